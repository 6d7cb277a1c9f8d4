package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

type benchAllocationRequest struct {
	Features       []string `json:"features"`
	File           string   `json:"file"`
	Candidates     int      `json:"candidates"`
	Feasible       int      `json:"feasible"`
	TimeoutSeconds float64  `json:"timeoutSeconds"`
	BudgetSeconds  float64  `json:"budgetSeconds"`
	Placements     bool     `json:"placements"`
	Allocator      string   `json:"allocator"`
}

// benchWorld is the file of a bench: a cluster, and what happens in it.
type benchWorld struct {
	world
	Nodes []*v1.Node  `json:"nodes"`
	Steps []benchStep `json:"steps"`
}

type benchStep struct {
	Name     string                       `json:"name"`
	Allocate []*resourceapi.ResourceClaim `json:"allocate"`
	Release  string                       `json:"release"`
}

type benchAllocationAnswer struct {
	Seconds    float64      `json:"seconds"`
	Steps      []stepAnswer `json:"steps"`
	Fits       int          `json:"fits"`
	DoesNotFit int          `json:"doesNotFit"`
	Errors     int          `json:"errors"`
	Timeouts   int          `json:"timeouts"`
	NotRun     int          `json:"notRun"`
}

type stepAnswer struct {
	Name       string                         `json:"name"`
	Outcome    string                         `json:"outcome"`
	Node       string                         `json:"node,omitempty"`
	NodesTried int                            `json:"nodesTried"`
	Seconds    float64                        `json:"seconds"`
	Results    []resourceapi.AllocationResult `json:"results,omitempty"`
	Error      string                         `json:"error,omitempty"`
}

// scheduler is the part of kube-scheduler that the bench repeats for each pod.
type scheduler struct {
	world      benchWorld
	features   structured.Features
	cache      *cel.Cache
	state      structured.AllocatedState
	held       map[string][]resourceapi.AllocationResult
	next       int
	candidates int
	feasible   int
	timeout    time.Duration
}

func benchAllocation(line []byte) (any, error) {
	var request benchAllocationRequest
	if err := parse(line, &request); err != nil {
		return nil, err
	}
	s, err := newScheduler(request)
	if err != nil {
		return nil, err
	}
	var answer benchAllocationAnswer
	for _, step := range s.world.Steps {
		if step.Release != "" {
			s.release(step.Release)
			continue
		}
		if request.BudgetSeconds > 0 && answer.Seconds > request.BudgetSeconds {
			answer.NotRun++
			continue
		}
		answer.add(s.schedule(step), request.Placements)
	}
	return answer, nil
}

func newScheduler(request benchAllocationRequest) (*scheduler, error) {
	features, err := allocatorFeatures(request.Features)
	if err != nil {
		return nil, err
	}
	enableVariant(request.Allocator)
	s := &scheduler{
		features:   features,
		cache:      newCache(features),
		held:       map[string][]resourceapi.AllocationResult{},
		candidates: otherwise(request.Candidates, 500),
		feasible:   otherwise(request.Feasible, 1),
		timeout:    seconds(request.TimeoutSeconds, filterTimeout),
	}
	if err := parseFile(request.File, &s.world); err != nil {
		return nil, err
	}
	if len(s.world.Nodes) == 0 {
		return nil, errors.New("the world has no nodes")
	}
	s.state = s.world.state(features)
	return s, nil
}

func otherwise(given, fallback int) int {
	if given <= 0 {
		return fallback
	}
	return given
}

func parseFile(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := parse(text, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// schedule does for one pod what PreFilter and Filter do.
func (s *scheduler) schedule(step benchStep) stepAnswer {
	start := time.Now()
	answer := stepAnswer{Name: step.Name, Outcome: "doesNotFit"}
	allocator, err := newAllocator(s.world.world, s.features, s.copyOfState(), s.cache)
	if err != nil {
		return stepAnswer{Name: step.Name, Outcome: "error", Error: err.Error(), Seconds: time.Since(start).Seconds()}
	}
	found := 0
	for ; answer.NodesTried < min(s.candidates, len(s.world.Nodes)) && found < s.feasible; answer.NodesTried++ {
		node := s.world.Nodes[(s.next+answer.NodesTried)%len(s.world.Nodes)]
		results, err := allocateOn(allocator, node, step.Allocate, s.timeout)
		verdict := judge(step.Allocate, results, err, 0)
		if verdict.Outcome == "fits" {
			found++
			if found == 1 {
				answer.Outcome, answer.Node, answer.Results = "fits", node.Name, results
			}
			continue
		}
		if verdict.Outcome == "timeout" || verdict.Outcome == "error" && !errors.Is(err, structured.ErrFailedAllocationOnNode) {
			answer.Outcome, answer.Error = verdict.Outcome, verdict.Error
			break
		}
	}
	s.next = (s.next + answer.NodesTried) % len(s.world.Nodes)
	if answer.Outcome == "fits" {
		s.hold(step.Name, answer.Results)
	}
	answer.Seconds = time.Since(start).Seconds()
	return answer
}

// copyOfState is what the scheduler's claim tracker hands out for each pod.
func (s *scheduler) copyOfState() structured.AllocatedState {
	return structured.AllocatedState{
		AllocatedDevices:         maps.Clone(s.state.AllocatedDevices),
		AllocatedSharedDeviceIDs: maps.Clone(s.state.AllocatedSharedDeviceIDs),
		AggregatedCapacity:       s.state.AggregatedCapacity.Clone(),
	}
}

func (s *scheduler) hold(name string, results []resourceapi.AllocationResult) {
	for _, result := range results {
		hold(s.state, s.features, result)
	}
	s.held[name] = results
}

func (s *scheduler) release(name string) {
	for _, result := range s.held[name] {
		release(s.state, s.features, result)
	}
	delete(s.held, name)
}

func (a *benchAllocationAnswer) add(step stepAnswer, placements bool) {
	switch step.Outcome {
	case "fits":
		a.Fits++
	case "timeout":
		a.Timeouts++
	case "error":
		a.Errors++
	default:
		a.DoesNotFit++
	}
	a.Seconds += step.Seconds
	if !placements {
		step.Results = nil
	}
	a.Steps = append(a.Steps, step)
}

type benchCELRequest struct {
	celRequest
	File       string `json:"file"`
	Iterations int    `json:"iterations"`
}

type benchCELWorld struct {
	Slices      []*resourceapi.ResourceSlice `json:"slices"`
	Expressions []string                     `json:"expressions"`
}

type benchCELAnswer struct {
	Devices         int     `json:"devices"`
	Evaluations     int     `json:"evaluations"`
	CompileSeconds  float64 `json:"compileSeconds"`
	EvaluateSeconds float64 `json:"evaluateSeconds"`
	Values          int     `json:"values"`
	Errors          int     `json:"errors"`
}

func benchCEL(line []byte) (any, error) {
	var request benchCELRequest
	if err := parse(line, &request); err != nil {
		return nil, err
	}
	if request.File == "" {
		return benchOneExpression(request)
	}
	var world benchCELWorld
	if err := parseFile(request.File, &world); err != nil {
		return nil, err
	}
	devices := devicesOf(world.Slices)
	cache := cel.NewCache(len(world.Expressions)+1, celFeatures(request.Features))
	answer := benchCELAnswer{Devices: len(devices)}
	for _, expression := range world.Expressions {
		if err := answer.run(cache, expression, request.Derived, devices); err != nil {
			return nil, err
		}
	}
	return answer, nil
}

func devicesOf(slices []*resourceapi.ResourceSlice) []cel.Device {
	var devices []cel.Device
	for _, slice := range slices {
		for _, device := range slice.Spec.Devices {
			devices = append(devices, cel.Device{
				Driver:                   slice.Spec.Driver,
				AllowMultipleAllocations: device.AllowMultipleAllocations,
				Attributes:               device.Attributes,
				Capacity:                 device.Capacity,
			})
		}
	}
	return devices
}

// run compiles one expression and evaluates it on every device.
func (a *benchCELAnswer) run(cache *cel.Cache, expression string, derived bool, devices []cel.Device) error {
	start := time.Now()
	compiled := compileCached(cache, expression, derived)
	if compiled.Error != nil {
		return fmt.Errorf("expression %q: %s", expression, compiled.Error.Detail)
	}
	ready := time.Now()
	for _, device := range devices {
		if evaluateOnce(compiled, derived, device) {
			a.Values++
		} else {
			a.Errors++
		}
	}
	a.Evaluations += len(devices)
	a.CompileSeconds += ready.Sub(start).Seconds()
	a.EvaluateSeconds += time.Since(ready).Seconds()
	return nil
}

func compileCached(cache *cel.Cache, expression string, derived bool) cel.CompilationResult {
	if derived {
		return cache.GetOrCompileDerivedAttribute(expression)
	}
	return cache.GetOrCompile(expression)
}

func evaluateOnce(compiled cel.CompilationResult, derived bool, device cel.Device) bool {
	if derived {
		_, _, err := compiled.EvaluateDerivedAttribute(context.Background(), device)
		return err == nil
	}
	_, _, err := compiled.DeviceMatches(context.Background(), device)
	return err == nil
}

func benchOneExpression(request benchCELRequest) (any, error) {
	options := request.options()
	options.DisableCostEstimation = true
	engine := compilerFor(celFeatures(request.Features))
	start := time.Now()
	compiled := engine.CompileCELExpression(request.Expression, options)
	if compiled.Error != nil {
		return nil, fmt.Errorf("expression %q: %s", request.Expression, compiled.Error.Detail)
	}
	compileTime := time.Since(start)
	device := request.device()
	iterations := otherwise(request.Iterations, 10_000)
	start = time.Now()
	for range iterations {
		evaluateOnce(compiled, request.Derived, device)
	}
	return map[string]float64{
		"nsPerEvaluation": float64(time.Since(start).Nanoseconds()) / float64(iterations),
		"nsPerCompile":    float64(compileTime.Nanoseconds()),
	}, nil
}
