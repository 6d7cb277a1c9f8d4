// Command node-oracle answers which nodes kube-scheduler 1.37.2 would let a pod use, with
// kube-scheduler's own filter plugins, run as its scheduling cycle runs them.
//
// One JSON object a line on standard input, one a line on standard output:
//
//	{"kind":"nodes", "id":1, "objects":[{…}, …], "pods":["name", …]}
//	→ {"id":1, "pods":{"name":{"node":"", "other":"TaintToleration: …"}, …}}
//
// Objects are Nodes, Pods (all of namespace default or others), Namespaces, PersistentVolumeClaims,
// PersistentVolumes, StorageClasses, CSINodes, as in manifests; the API server's defaults are filled
// in. Pods with a node run there; "pods" names those (of namespace default) that are asked about.
// An empty text says that the node can be used, any other text names the first plugin that refuses.
// A request that cannot be served is answered with "fault".
//
// Left out are plugins that need a cluster or devices: DynamicResources, gates, preemption.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// filters are the plugins that judge nodes, in kube-scheduler's order.
var filters = []string{
	names.NodeUnschedulable, names.NodeName, names.TaintToleration, names.NodeAffinity, names.NodePorts,
	names.NodeResourcesFit, names.VolumeRestrictions, names.NodeVolumeLimits, names.VolumeBinding,
	names.VolumeZone, names.PodTopologySpread, names.InterPodAffinity,
}

type request struct {
	ID      json.RawMessage   `json:"id"`
	Objects []json.RawMessage `json:"objects"`
	Pods    []string          `json:"pods"`
}

type answer struct {
	ID    json.RawMessage              `json:"id"`
	Pods  map[string]map[string]string `json:"pods,omitempty"`
	Fault string                       `json:"fault,omitempty"`
}

func main() {
	klog.SetOutput(os.Stderr)
	metrics.Register()
	reader := bufio.NewReaderSize(os.Stdin, 1<<20)
	writer := json.NewEncoder(os.Stdout)
	for {
		line, err := reader.ReadBytes('\n')
		if err != nil {
			return
		}
		var asked request
		reply := answer{}
		if err := json.Unmarshal(line, &asked); err != nil {
			reply.Fault = err.Error()
		} else if reply.Pods, err = judge(asked); err != nil {
			reply.Fault = err.Error()
		}
		reply.ID = asked.ID
		if err := writer.Encode(reply); err != nil {
			return
		}
	}
}

// judge runs the filters for each pod that is asked about.
func judge(asked request) (map[string]map[string]string, error) {
	objects, err := decode(asked.Objects)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	snapshot, waiting := arrange(objects)
	scheduler, err := newFramework(ctx, objects, snapshot)
	if err != nil {
		return nil, err
	}
	answers := map[string]map[string]string{}
	for _, name := range asked.Pods {
		pod, ok := waiting[name]
		if !ok {
			return nil, fmt.Errorf("pod %q is not in the objects, or has a node", name)
		}
		if answers[name], err = judgePod(ctx, scheduler, snapshot, pod); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// decode reads objects and fills in the API server's defaults.
func decode(raw []json.RawMessage) ([]runtime.Object, error) {
	objects := make([]runtime.Object, 0, len(raw))
	for _, each := range raw {
		object, _, err := legacyscheme.Codecs.UniversalDeserializer().Decode(each, nil, nil)
		if err != nil {
			return nil, err
		}
		legacyscheme.Scheme.Default(object)
		objects = append(objects, object)
	}
	return objects, nil
}

// arrange puts pods that have a node on it, and returns the others by name.
func arrange(objects []runtime.Object) (*internalcache.Snapshot, map[string]*v1.Pod) {
	var nodes []*v1.Node
	var running []*v1.Pod
	waiting := map[string]*v1.Pod{}
	for _, object := range objects {
		switch object := object.(type) {
		case *v1.Node:
			nodes = append(nodes, object)
		case *v1.Pod:
			if object.Spec.NodeName != "" {
				running = append(running, object)
			} else if object.Namespace == "default" {
				waiting[object.Name] = object
			}
		}
	}
	return internalcache.NewSnapshot(running, nodes), waiting
}

func newFramework(
	ctx context.Context, objects []runtime.Object, snapshot *internalcache.Snapshot,
) (framework.Framework, error) {
	client := fake.NewClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	defaults, err := latest.Default()
	if err != nil {
		return nil, err
	}
	scheduler, err := frameworkruntime.NewFramework(
		ctx, plugins.NewInTreeRegistry(), profile(defaults),
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(snapshot),
		frameworkruntime.WithSharedCSIManager(
			nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())),
	)
	if err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return scheduler, nil
}

// profile enables the filters, and what every profile must have.
func profile(defaults *config.KubeSchedulerConfiguration) *config.KubeSchedulerProfile {
	enabled := make([]config.Plugin, 0, len(filters))
	known := map[string]bool{}
	for _, name := range filters {
		enabled = append(enabled, config.Plugin{Name: name})
		known[name] = true
	}
	var configs []config.PluginConfig
	for _, each := range defaults.Profiles[0].PluginConfig {
		if known[each.Name] {
			configs = append(configs, each)
		}
	}
	with := func(name string) config.PluginSet {
		return config.PluginSet{Enabled: []config.Plugin{{Name: name}}}
	}
	return &config.KubeSchedulerProfile{
		SchedulerName: v1.DefaultSchedulerName,
		Plugins: &config.Plugins{
			QueueSort: with(names.PrioritySort),
			Bind:      with(names.DefaultBinder),
			PreFilter: config.PluginSet{Enabled: preFilters(enabled)},
			Filter:    config.PluginSet{Enabled: enabled},
		},
		PluginConfig: configs,
	}
}

// preFilters leaves out the plugins that only filter.
func preFilters(enabled []config.Plugin) []config.Plugin {
	only := map[string]bool{names.NodeUnschedulable: true, names.NodeName: true, names.TaintToleration: true}
	var found []config.Plugin
	for _, each := range enabled {
		if !only[each.Name] {
			found = append(found, each)
		}
	}
	return found
}

// judgePod says for each node what kube-scheduler would.
func judgePod(
	ctx context.Context, scheduler framework.Framework, snapshot *internalcache.Snapshot, pod *v1.Pod,
) (map[string]string, error) {
	nodes, err := snapshot.NodeInfos().List()
	if err != nil {
		return nil, err
	}
	state := framework.NewCycleState()
	allowed, status, _ := scheduler.RunPreFilterPlugins(ctx, state, pod)
	verdicts := map[string]string{}
	for _, node := range nodes {
		name := node.Node().Name
		switch {
		case !status.IsSuccess():
			verdicts[name] = text(status)
		case !allowed.AllNodes() && !allowed.NodeNames.Has(name):
			verdicts[name] = "PreFilter: the node is left out"
		default:
			verdicts[name] = text(scheduler.RunFilterPlugins(ctx, state, pod, node))
		}
	}
	return verdicts, nil
}

func text(status *fwk.Status) string {
	if status.IsSuccess() {
		return ""
	}
	return status.Plugin() + ": " + status.Message()
}
