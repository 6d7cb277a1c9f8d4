package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

// filterTimeout is kube-scheduler's default for one node.
const filterTimeout = 10 * time.Second

// cacheEntries is the size of kube-scheduler's CEL cache.
const cacheEntries = 10

// deviceRef names a device.
type deviceRef struct {
	Driver string `json:"driver"`
	Pool   string `json:"pool"`
	Device string `json:"device"`
}

func (d deviceRef) id() structured.DeviceID {
	return structured.MakeDeviceID(d.Driver, d.Pool, d.Device)
}

// inUse is the part of the cluster's state that an allocator is given.
type inUse struct {
	Devices []deviceRef `json:"devices"`
	Shares  []struct {
		deviceRef
		ShareID types.UID `json:"shareID"`
	} `json:"shares"`
	ConsumedCapacity []struct {
		deviceRef
		Consumed map[resourceapi.QualifiedName]resource.Quantity `json:"consumed"`
	} `json:"consumedCapacity"`
}

// world is everything that does not change between claims.
type world struct {
	Classes         []*resourceapi.DeviceClass   `json:"classes"`
	Slices          []*resourceapi.ResourceSlice `json:"slices"`
	Allocated       inUse                        `json:"allocated"`
	AllocatedClaims []*resourceapi.ResourceClaim `json:"allocatedClaims"`
}

type allocationRequest struct {
	world
	Features       []string                     `json:"features"`
	Node           *v1.Node                     `json:"node"`
	Claims         []*resourceapi.ResourceClaim `json:"claims"`
	TimeoutSeconds float64                      `json:"timeoutSeconds"`
	Allocator      string                       `json:"allocator"`
}

// allocationAnswer has the form of a case's "expect".
type allocationAnswer struct {
	Outcome      string                         `json:"outcome"`
	Results      []resourceapi.AllocationResult `json:"results,omitzero"`
	Error        string                         `json:"error,omitempty"`
	AnyNodeError *bool                          `json:"anyNodeError,omitempty"`
	Seconds      float64                        `json:"seconds"`
}

var errTimeout = errors.New("timed out trying to allocate devices")

func answerAllocation(line []byte) (any, error) {
	var request allocationRequest
	if err := parse(line, &request); err != nil {
		return nil, err
	}
	features, err := allocatorFeatures(request.Features)
	if err != nil {
		return nil, err
	}
	enableVariant(request.Allocator)
	if request.Node == nil {
		return nil, errors.New("allocation needs a node")
	}
	start := time.Now()
	allocator, err := newAllocator(request.world, features, request.state(features), newCache(features))
	if err != nil {
		return nil, err
	}
	results, err := allocateOn(allocator, request.Node, request.Claims, seconds(request.TimeoutSeconds, filterTimeout))
	return judge(request.Claims, results, err, time.Since(start)), nil
}

// judge turns what Allocate returned into words, as the scheduler's plugin reads it.
func judge(claims []*resourceapi.ResourceClaim, results []resourceapi.AllocationResult, err error, took time.Duration) allocationAnswer {
	answer := allocationAnswer{Seconds: took.Seconds()}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		answer.Outcome, answer.Error = "timeout", errTimeout.Error()
	case err != nil:
		answer.Outcome, answer.Error = "error", err.Error()
		answer.AnyNodeError = ptr.To(errors.Is(err, structured.ErrFailedAllocationOnNode))
	case len(results) != len(claims):
		answer.Outcome = "doesNotFit"
	default:
		answer.Outcome, answer.Results = "fits", append([]resourceapi.AllocationResult{}, results...)
	}
	return answer
}

// enableVariant picks the allocator's implementation. With the default gates of
// 1.37 kube-scheduler never takes "stable", which orders pools differently; so it
// is left out unless asked for.
func enableVariant(name string) {
	switch name {
	case "":
		structured.EnableAllocators("incubating", "experimental")
	case "any":
		structured.EnableAllocators()
	default:
		structured.EnableAllocators(name)
	}
}

func seconds(given float64, otherwise time.Duration) time.Duration {
	if given <= 0 {
		return otherwise
	}
	return time.Duration(given * float64(time.Second))
}

func newCache(features structured.Features) *cel.Cache {
	return cel.NewCache(cacheEntries, cel.Features{
		EnableConsumableCapacity: features.ConsumableCapacity,
		EnableListTypeAttributes: features.ListTypeAttributes,
	})
}

func newAllocator(w world, features structured.Features, state structured.AllocatedState, cache *cel.Cache) (structured.Allocator, error) {
	return structured.NewAllocator(context.Background(), features, state, classes(w.Classes), w.Slices, cache)
}

func allocateOn(allocator structured.Allocator, node *v1.Node, claims []*resourceapi.ResourceClaim, timeout time.Duration) ([]resourceapi.AllocationResult, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return allocator.Allocate(ctx, node, claims)
}

// allocatorFeatures maps Kubernetes' gates onto the allocator's switches.
func allocatorFeatures(names []string) (structured.Features, error) {
	features := structured.Features{
		AdminAccess:             slices.Contains(names, "DRAAdminAccess"),
		CompatibilityGroups:     slices.Contains(names, "DRADeviceCompatibilityGroups"),
		ConsumableCapacity:      slices.Contains(names, "DRAConsumableCapacity"),
		DerivedAttributes:       slices.Contains(names, "DRADerivedAttributes"),
		DeviceBindingAndStatus:  slices.Contains(names, "DRADeviceBindingConditions+DRAResourceClaimDeviceStatus"),
		DeviceTaints:            slices.Contains(names, "DRADeviceTaints"),
		FractionalCapacityRange: slices.Contains(names, "DRAFractionalCapacityRange"),
		ListTypeAttributes:      slices.Contains(names, "DRAListTypeAttributes"),
		OptionalNodeOperations:  slices.Contains(names, "DRAOptionalNodeOperations"),
		PartitionableDevices:    slices.Contains(names, "DRAPartitionableDevices"),
		PrioritizedList:         slices.Contains(names, "DRAPrioritizedList"),
	}
	if unknown := sets.New(names...).Difference(features.Set()); unknown.Len() > 0 {
		return features, fmt.Errorf("unknown features %q", sets.List(unknown))
	}
	return features, nil
}

// state is the allocated state that kube-scheduler would gather from the claims.
func (w world) state(features structured.Features) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, device := range w.Allocated.Devices {
		state.AllocatedDevices.Insert(device.id())
	}
	for _, share := range w.Allocated.Shares {
		state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(share.id(), ptr.To(share.ShareID)))
	}
	for _, part := range w.Allocated.ConsumedCapacity {
		state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(part.id(), part.Consumed))
	}
	for _, claim := range w.AllocatedClaims {
		if claim.Status.Allocation != nil {
			hold(state, features, *claim.Status.Allocation)
		}
	}
	return state
}

// hold marks the devices of an allocation as in use.
func hold(state structured.AllocatedState, features structured.Features, allocation resourceapi.AllocationResult) {
	change(features, allocation,
		func(id structured.DeviceID) { state.AllocatedDevices.Insert(id) },
		func(id structured.SharedDeviceID) { state.AllocatedSharedDeviceIDs.Insert(id) },
		state.AggregatedCapacity.Insert)
}

// release takes back what hold did.
func release(state structured.AllocatedState, features structured.Features, allocation resourceapi.AllocationResult) {
	change(features, allocation,
		func(id structured.DeviceID) { state.AllocatedDevices.Delete(id) },
		func(id structured.SharedDeviceID) { state.AllocatedSharedDeviceIDs.Delete(id) },
		state.AggregatedCapacity.Remove)
}

// change tells what an allocation holds: devices with admin access are not held,
// and shares exist only where the gate for consumable capacity is on.
func change(
	features structured.Features,
	allocation resourceapi.AllocationResult,
	whole func(structured.DeviceID),
	share func(structured.SharedDeviceID),
	capacity func(structured.DeviceConsumedCapacity),
) {
	for _, result := range allocation.Devices.Results {
		if ptr.Deref(result.AdminAccess, false) {
			continue
		}
		id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
		if !features.ConsumableCapacity || result.ShareID == nil {
			whole(id)
			continue
		}
		share(structured.MakeSharedDeviceID(id, result.ShareID))
		if result.ConsumedCapacity != nil {
			capacity(structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
		}
	}
}

// classes lists device classes in the order given.
type classes []*resourceapi.DeviceClass

func (c classes) List() ([]*resourceapi.DeviceClass, error) {
	return c, nil
}

func (c classes) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, class := range c {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: resourceapi.GroupName, Resource: "deviceclasses"}, name)
}
