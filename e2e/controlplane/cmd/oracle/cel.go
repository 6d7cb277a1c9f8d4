package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/dynamic-resource-allocation/cel"
)

// celRequest is an expression and the device that it sees.
type celRequest struct {
	Features    []string `json:"features"`
	Stored      bool     `json:"stored"`
	Derived     bool     `json:"derived"`
	CompileOnly bool     `json:"compileOnly"`
	Expression  string   `json:"expression"`

	Driver                   string                                                    `json:"driver"`
	Attributes               map[resourceapi.QualifiedName]resourceapi.DeviceAttribute `json:"attributes"`
	Capacity                 map[resourceapi.QualifiedName]resourceapi.DeviceCapacity  `json:"capacity"`
	AllowMultipleAllocations *bool                                                     `json:"allowMultipleAllocations"`
}

// celAnswer is what cel-go says.
type celAnswer struct {
	Outcome   string                       `json:"outcome"`
	Match     *bool                        `json:"match,omitempty"`
	Attribute *resourceapi.DeviceAttribute `json:"attribute,omitempty"`
	MaxCost   *uint64                      `json:"maxCost,omitempty"`
	Cost      *uint64                      `json:"cost,omitempty"`
	Error     string                       `json:"error,omitempty"`
}

// compiler is what cel.GetCompiler returns; its own type has no public name.
type compiler interface {
	CompileCELExpression(expression string, options cel.Options) cel.CompilationResult
}

// compilers keeps one environment per set of gates: the library keeps only the
// last one, and building one takes milliseconds.
var compilers = map[cel.Features]compiler{}

func compilerFor(features cel.Features) compiler {
	if known, ok := compilers[features]; ok {
		return known
	}
	made := cel.GetCompiler(features)
	compilers[features] = made
	return made
}

func celFeatures(names []string) cel.Features {
	return cel.Features{
		EnableConsumableCapacity: slices.Contains(names, "DRAConsumableCapacity"),
		EnableListTypeAttributes: slices.Contains(names, "DRAListTypeAttributes"),
	}
}

func (r celRequest) options() cel.Options {
	envType := environment.NewExpressions
	if r.Stored {
		envType = environment.StoredExpressions
	}
	return cel.Options{EnvType: &envType, DerivedAttribute: r.Derived}
}

func (r celRequest) device() cel.Device {
	return cel.Device{
		Driver:                   r.Driver,
		AllowMultipleAllocations: r.AllowMultipleAllocations,
		Attributes:               r.Attributes,
		Capacity:                 r.Capacity,
	}
}

func answerCEL(line []byte) (any, error) {
	var request celRequest
	if err := parse(line, &request); err != nil {
		return nil, err
	}
	compiled := compilerFor(celFeatures(request.Features)).CompileCELExpression(request.Expression, request.options())
	if compiled.Error != nil {
		return celAnswer{Outcome: "compileError", Error: compiled.Error.Detail}, nil
	}
	answer := celAnswer{Outcome: "compiles", MaxCost: &compiled.MaxCost}
	if request.CompileOnly {
		return answer, nil
	}
	err := answer.evaluate(compiled, request)
	if err != nil {
		answer.Outcome, answer.Error = "runtimeError", err.Error()
		return answer, nil
	}
	answer.Outcome = "value"
	return answer, nil
}

// evaluate runs the expression once, as a selector or as a derived attribute.
func (a *celAnswer) evaluate(compiled cel.CompilationResult, request celRequest) error {
	if request.Derived {
		attribute, details, err := compiled.EvaluateDerivedAttribute(context.Background(), request.device())
		if details != nil {
			a.Cost = details.ActualCost()
		}
		if err == nil && attribute == nil {
			return errors.New("no attribute")
		}
		a.Attribute = attribute
		return err
	}
	match, details, err := compiled.DeviceMatches(context.Background(), request.device())
	if details != nil {
		a.Cost = details.ActualCost()
	}
	if err != nil {
		return fmt.Errorf("%w", err)
	}
	a.Match = &match
	return nil
}
