// Command oracle answers questions with kube-scheduler's own code: the allocator
// and the CEL environment of k8s.io/dynamic-resource-allocation 1.37.2, used as
// the scheduler's plugin uses them.
//
// # Protocol
//
// One JSON object a line on standard input, one JSON object a line on standard
// output, in the order of the requests. Fields that a request does not need are
// ignored. Every answer repeats "id" as it was given. A request that cannot be
// read or served is answered with {"id":…, "fault": "text"}; the program goes on.
// "features" is a list of feature gates that are on, by Kubernetes' names
// ("DRADeviceBindingConditions+DRAResourceClaimDeviceStatus" is one switch);
// all others are off.
//
//	{"kind":"cel", "features":[…], "stored":bool, "derived":bool, "expression":"…",
//	 "driver":"…", "attributes":{…}, "capacity":{…}, "allowMultipleAllocations":bool,
//	 "compileOnly":bool}
//	→ {"outcome":"value"|"runtimeError"|"compileError"|"compiles",
//	   "match":bool (selector), "attribute":{…} (derived), "maxCost":n (worst cost
//	   by estimate), "cost":n (cost of this run), "error":"…"}
//
// Attributes and capacity have the form of a ResourceSlice. "stored" takes the
// environment of expressions that the API server has stored already.
//
//	{"kind":"allocation", "features":[…], "node":{…}, "claims":[…], "classes":[…],
//	 "slices":[…], "allocated":{"devices":[…],"shares":[…],"consumedCapacity":[…]},
//	 "allocatedClaims":[…], "timeoutSeconds":10, "allocator":"…"}
//	→ {"outcome":"fits"|"doesNotFit"|"error"|"timeout", "results":[AllocationResult…],
//	   "error":"…", "anyNodeError":bool, "seconds":s}
//
// "allocatedClaims" are further claims whose status.allocation counts as in use.
// "allocator" picks one of the three variants, "stable", "incubating" or
// "experimental"; "any" lets the features decide, as kube-scheduler does; without
// it they decide between the latter two, since the default gates of 1.37 never
// pick "stable", which orders pools differently. shareIDs are as they were made.
//
//	{"kind":"bench-allocation", "features":[…], "file":"world.json",
//	 "allocator":"…",
//	 "candidates":500, "feasible":1, "timeoutSeconds":10, "budgetSeconds":s,
//	 "placements":bool}
//	→ {"seconds":s (sum over steps), "steps":[{"name":"…","outcome":"…","node":"…",
//	   "nodesTried":n,"seconds":s,"results":[…] (with "placements"),"error":"…"}],
//	   "fits":n, "doesNotFit":n, "errors":n, "timeouts":n, "notRun":n}
//
// The file holds {"nodes":[…], "classes":[…], "slices":[…], "allocated":{…},
// "allocatedClaims":[…], "steps":[{"name":"a","allocate":[claims]} |
// {"release":"a"}]}. For each "allocate" step the oracle does what kube-scheduler does for
// a pod: a copy of the allocated state, a new allocator, then Allocate node after
// node until "feasible" nodes are found or "candidates" nodes were tried, beginning
// behind the last node that the step before tried. The first feasible node is
// taken and its devices stay in use until the step's release. kube-scheduler looks
// for more nodes than it needs, to score them: all of fewer than 100 nodes, 10 % of
// 5,000, so "feasible":500 there is what it does. A timeout (of one
// Allocate call) ends the step, as it ends the scheduling attempt. The CEL cache
// is shared by all steps and fresh for each request. "budgetSeconds" ends the
// whole request early; the steps left are "notRun".
//
//	{"kind":"bench-cel", "features":[…], "file":"world.json", "derived":bool}
//	→ {"devices":n, "evaluations":n, "compileSeconds":s, "evaluateSeconds":s,
//	   "values":n, "errors":n}
//
// The file holds {"slices":[…], "expressions":["…"]}. Every expression is compiled
// once, in a fresh cache, and evaluated on every device. With "file" absent and
// "expression" and the device's fields as in "cel" given, "iterations" times the
// one evaluation: → {"nsPerEvaluation":n, "nsPerCompile":n}.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/klog/v2"
	kjson "sigs.k8s.io/json"
)

// maxLine bounds one request: a world of many thousand devices fits.
const maxLine = 1 << 30

// envelope is what every request has.
type envelope struct {
	ID   json.RawMessage `json:"id"`
	Kind string          `json:"kind"`
}

// answerer serves one kind of request.
type answerer func(request []byte) (any, error)

func main() {
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

func serve(in io.Reader, out io.Writer) error {
	reader := bufio.NewReaderSize(in, 1<<20)
	writer := bufio.NewWriter(out)
	for {
		line, err := readLine(reader)
		if len(line) > 0 {
			if err := write(writer, answer(line)); err != nil {
				return err
			}
		}
		// Answers wait for the next read only while more requests are at hand.
		if reader.Buffered() == 0 {
			if err := writer.Flush(); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return writer.Flush()
		}
		if err != nil {
			return err
		}
	}
}

func readLine(reader *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, prefix, err := reader.ReadLine()
		if err != nil {
			return nil, err
		}
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, fmt.Errorf("request longer than %d bytes", maxLine)
		}
		if !prefix {
			return line, nil
		}
	}
}

func write(writer *bufio.Writer, answer map[string]any) error {
	encoder := json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(answer)
}

// answer never fails: what goes wrong is part of the answer.
func answer(line []byte) (reply map[string]any) {
	var request envelope
	reply = map[string]any{"id": nil}
	defer func() {
		if problem := recover(); problem != nil {
			reply = map[string]any{"id": reply["id"], "fault": fmt.Sprintf("panic: %v", problem)}
		}
	}()
	if err := kjson.UnmarshalCaseSensitivePreserveInts(line, &request); err != nil {
		return map[string]any{"id": nil, "fault": err.Error()}
	}
	reply["id"] = request.ID
	serve, known := answerers[request.Kind]
	if !known {
		reply["fault"] = fmt.Sprintf("unknown kind %q", request.Kind)
		return reply
	}
	result, err := serve(line)
	if err == nil {
		err = merge(reply, result)
	}
	if err != nil {
		return map[string]any{"id": request.ID, "fault": err.Error()}
	}
	return reply
}

var answerers = map[string]answerer{
	"cel":              answerCEL,
	"allocation":       answerAllocation,
	"bench-allocation": benchAllocation,
	"bench-cel":        benchCEL,
}

// merge puts the fields of a result beside the id.
func merge(reply map[string]any, result any) error {
	text, err := json.Marshal(result)
	if err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	for name, value := range fields {
		reply[name] = value
	}
	return nil
}

// parse reads a request as the API server reads objects: names match in case.
func parse(request []byte, into any) error {
	return kjson.UnmarshalCaseSensitivePreserveInts(request, into)
}
