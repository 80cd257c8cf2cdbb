// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// maxFaultFile bounds what ParseFaults reads.
const maxFaultFile = 1 << 20

// faultRow is one fault as a file spells it. Fields that are not given keep what `use` brings.
type faultRow struct {
	Use         string   `yaml:"use"`
	Name        *string  `yaml:"name"`
	Machine     *string  `yaml:"machine"`
	Method      *string  `yaml:"method"`
	Path        *string  `yaml:"path"`
	Nth         *int     `yaml:"nth"`
	After       *int     `yaml:"after"`
	Count       *int     `yaml:"count"`
	PerMachine  *bool    `yaml:"perMachine"`
	Probability *float64 `yaml:"probability"`

	Delay           *time.Duration    `yaml:"delay"`
	Execute         *bool             `yaml:"execute"`
	Ignore          *bool             `yaml:"ignore"`
	StalePower      *time.Duration    `yaml:"stalePower"`
	Task            *taskRow          `yaml:"task"`
	Drop            *bool             `yaml:"drop"`
	Reset           *bool             `yaml:"reset"`
	Status          *int              `yaml:"status"`
	Body            *string           `yaml:"body"`
	Redirect        *string           `yaml:"redirect"`
	Headers         map[string]string `yaml:"headers"`
	Set             map[string]any    `yaml:"set"`
	Remove          []string          `yaml:"remove"`
	PadTo           *int64            `yaml:"padTo"`
	Truncate        *int              `yaml:"truncate"`
	BytesPerSecond  *int              `yaml:"bytesPerSecond"`
	CloseConnection *bool             `yaml:"closeConnection"`
}

type taskRow struct {
	Takes           time.Duration `yaml:"takes"`
	Stuck           bool          `yaml:"stuck"`
	Fails           bool          `yaml:"fails"`
	MonitorVanishes bool          `yaml:"monitorVanishes"`
}

// ParseFaults reads a fault file: a mapping with the list `faults`, whose fields are those of Fault and Action in lower
// camel case, with `use` for a fault of the catalogue to start from, `nth` for exactly one hit, and `headers`.
// It returns every error that it finds, each with its line.
func ParseFaults(data []byte) ([]Fault, error) {
	if len(data) > maxFaultFile {
		return nil, fmt.Errorf("fault file: %d bytes are more than %d: split it", len(data), maxFaultFile)
	}
	var file struct {
		Faults []faultRow `yaml:"faults"`
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, fmt.Errorf("fault file: %w", err)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("fault file: more than one YAML document: use one list of faults")
	}
	var lines struct {
		Faults []yaml.Node `yaml:"faults"`
	}
	if err := yaml.Unmarshal(data, &lines); err != nil {
		return nil, fmt.Errorf("fault file: %w", err)
	}
	var faults []Fault
	var errs []error
	for i, row := range file.Faults {
		f, problems := row.fault()
		for _, p := range problems {
			errs = append(errs, fmt.Errorf("fault file line %d: %s", lines.Faults[i].Line, p))
		}
		faults = append(faults, f)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return faults, nil
}

func (r *faultRow) fault() (Fault, []string) {
	var f Fault
	var problems []string
	if r.Use != "" {
		named, found := FaultNamed(r.Use)
		if !found {
			problems = append(problems, fmt.Sprintf("use: %q is not in the catalogue: use one of %s",
				r.Use, strings.Join(faultNames(), ", ")))
		}
		f = named
	}
	r.applyMatch(&f)
	r.applyAction(&f.Action)
	if r.Nth != nil {
		if *r.Nth < 1 {
			problems = append(problems, "nth: the first request is 1")
		}
		f.After, f.Count = *r.Nth-1, 1
	}
	problems = append(problems, f.problems()...)
	if f.idle() {
		problems = append(problems, "the fault does nothing: give it an action such as status, delay or drop")
	}
	return f, problems
}

func assign[T any](dst, v *T) {
	if v != nil {
		*dst = *v
	}
}

func (r *faultRow) applyMatch(f *Fault) {
	assign(&f.Name, r.Name)
	assign(&f.Machine, r.Machine)
	assign(&f.Method, r.Method)
	assign(&f.Path, r.Path)
	assign(&f.After, r.After)
	assign(&f.Count, r.Count)
	assign(&f.PerMachine, r.PerMachine)
	assign(&f.Probability, r.Probability)
}

func (r *faultRow) applyAction(a *Action) {
	assign(&a.Delay, r.Delay)
	assign(&a.Execute, r.Execute)
	assign(&a.Ignore, r.Ignore)
	assign(&a.StalePower, r.StalePower)
	if r.Task != nil {
		script := TaskScript(*r.Task)
		a.AsTask = &script
	}
	assign(&a.Drop, r.Drop)
	assign(&a.Reset, r.Reset)
	assign(&a.Status, r.Status)
	assign(&a.Body, r.Body)
	assign(&a.Redirect, r.Redirect)
	if r.Headers != nil {
		a.Header = r.Headers
	}
	if r.Set != nil {
		a.Set = r.Set
	}
	if r.Remove != nil {
		a.Remove = r.Remove
	}
	assign(&a.PadTo, r.PadTo)
	assign(&a.Truncate, r.Truncate)
	assign(&a.BytesPerSecond, r.BytesPerSecond)
	assign(&a.CloseConnection, r.CloseConnection)
}

// problems lists the values that make no sense.
func (f *Fault) problems() []string {
	var list []string
	check := func(wrong bool, text string) {
		if wrong {
			list = append(list, text)
		}
	}
	check(math.IsNaN(f.Probability) || f.Probability < 0 || f.Probability > 1, "probability: use a number from 0 to 1")
	check(f.After < 0 || f.Count < 0, "after, count: not below 0")
	check(f.Delay < 0 || f.StalePower < 0, "delay, stalePower: not below 0")
	check(f.Status != 0 && (f.Status < 200 || f.Status > 599), "status: use 200 to 599")
	check(f.PadTo < 0 || f.Truncate < 0 || f.BytesPerSecond < 0, "padTo, truncate, bytesPerSecond: not below 0")
	check(f.Body != "" && f.Status == 0, "body: say which status goes with it")
	for _, m := range strings.Split(f.Method, ",") {
		m = strings.ToUpper(strings.TrimSpace(m))
		known := []string{"", http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
		check(!slices.Contains(known, m), fmt.Sprintf("method: %q is none", m))
	}
	return list
}

// idle says that the fault changes nothing.
func (f *Fault) idle() bool {
	a := f.Action
	return !a.answers() && !a.Ignore && !a.CloseConnection && a.Delay == 0 && a.StalePower == 0 && a.AsTask == nil &&
		len(a.Header) == 0 && len(a.Set) == 0 && len(a.Remove) == 0 && a.PadTo == 0 && a.Truncate == 0 && a.BytesPerSecond == 0
}

func faultNames() []string {
	var names []string
	for _, f := range requestFaults() {
		names = append(names, f.Name)
	}
	return names
}
