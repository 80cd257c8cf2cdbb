// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/metalaw/metalaw/redfish/emulator"
)

// maxBody bounds the requests to the control interface.
const maxBody = 1 << 20

// control serves the control interface of a fleet.
type control struct {
	fleet *emulator.Fleet

	mu   sync.Mutex
	undo map[string]func() // by machine and trouble
}

// Control returns the HTTP interface to a fleet. It asks for no credentials: let it listen on a loopback address.
//
//	GET    /machines, /machines/{name}               what there is
//	GET    /writes, /requests                        what the BMCs received; ?machine= &method= &path= &since=
//	GET    /catalogue                                the names of all troubles
//	GET    /faults; POST /faults (YAML); DELETE      the faults at work
//	POST   /machines/{name}/power                    {"power":"On"|"Off"}, behind the BMC's back
//	POST   /machines/{name}/reboot                   the operating system reboots by itself
//	POST   /machines/{name}/reachability             {"reachability":"Reachable"|"Refusing"|"Silent"}
//	POST   /machines/{name}/password                 {"password":"..."}
//	POST   /machines/{name}/identity                 {"uuid":"...","serialNumber":"..."}
//	POST   /machines/{name}/drives/{drive}           {"contents":"..."}
//	POST   /machines/{name}/troubles/{trouble}       arranges a trouble of the catalogue; DELETE ends it
func Control(fleet *emulator.Fleet) http.Handler {
	c := &control{fleet: fleet, undo: map[string]func(){}}
	mux := http.NewServeMux()
	handle := func(pattern string, h func(*http.Request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			answer, err := h(r)
			respond(w, answer, err)
		})
	}
	machine := func(pattern string, h func(*emulator.Machine, *http.Request) error) {
		handle(pattern, func(r *http.Request) (any, error) {
			m := fleet.Machine(r.PathValue("name"))
			if m == nil {
				return nil, notFoundError("machine " + r.PathValue("name"))
			}
			if err := h(m, r); err != nil {
				return nil, err
			}
			return view(m), nil
		})
	}
	handle("/", func(r *http.Request) (any, error) { return nil, notFoundError(r.Method + " " + r.URL.Path) })
	handle("GET /machines", c.machines)
	machine("GET /machines/{name}", func(*emulator.Machine, *http.Request) error { return nil })
	handle("GET /writes", c.writes)
	handle("GET /requests", c.requests)
	handle("GET /catalogue", c.catalogue)
	handle("GET /faults", c.faults)
	handle("POST /faults", c.addFaults)
	handle("DELETE /faults", func(r *http.Request) (any, error) { fleet.ClearFaults(); return c.faults(r) })
	machine("POST /machines/{name}/power", setPower)
	machine("POST /machines/{name}/reboot", func(m *emulator.Machine, _ *http.Request) error { m.OSReboot(); return nil })
	machine("POST /machines/{name}/reachability", setReachability)
	machine("POST /machines/{name}/password", setPassword)
	machine("POST /machines/{name}/identity", setIdentity)
	machine("POST /machines/{name}/drives/{drive}", writeDrive)
	machine("POST /machines/{name}/troubles/{trouble}", c.arrange)
	machine("DELETE /machines/{name}/troubles/{trouble}", c.end)
	return mux
}

type notFoundError string

func (e notFoundError) Error() string { return string(e) + " does not exist" }

func respond(w http.ResponseWriter, answer any, err error) {
	status := http.StatusOK
	if err != nil {
		status = http.StatusBadRequest
		var missing notFoundError
		if errors.As(err, &missing) {
			status = http.StatusNotFound
		}
		answer = map[string]string{"error": err.Error()}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(answer) //nolint:errchkjson // Answers are plain data; what fails is a client that left.
}

func decode(r *http.Request, into any) error {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("request body: %w", err)
	}
	return nil
}

func (c *control) machines(*http.Request) (any, error) {
	list := []machineView{}
	for _, m := range c.fleet.Machines() {
		list = append(list, view(m))
	}
	return list, nil
}

func filter(r *http.Request) (emulator.Filter, error) {
	q := r.URL.Query()
	f := emulator.Filter{Machine: q.Get("machine"), Method: q.Get("method"), Path: q.Get("path")}
	if since := q.Get("since"); since != "" {
		n, err := strconv.Atoi(since)
		if err != nil {
			return f, fmt.Errorf("since=%q is not a number", since)
		}
		f.Since = n
	}
	return f, nil
}

func (c *control) writes(r *http.Request) (any, error) {
	f, err := filter(r)
	return append([]emulator.Write{}, c.fleet.Writes(f)...), err
}

func (c *control) requests(r *http.Request) (any, error) {
	f, err := filter(r)
	return append([]emulator.RequestCount{}, c.fleet.Requests(f)...), err
}

func (c *control) catalogue(*http.Request) (any, error) {
	names := []string{}
	for _, t := range emulator.Catalogue() {
		names = append(names, t.Name)
	}
	return names, nil
}

func (c *control) faults(*http.Request) (any, error) {
	list := []faultView{}
	for _, i := range c.fleet.Faults() {
		f := i.Fault()
		list = append(list, faultView{f.Name, f.Machine, f.Method, f.Path, i.Hits()})
	}
	return list, nil
}

func (c *control) addFaults(r *http.Request) (any, error) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("request body: %w", err)
	}
	faults, err := emulator.ParseFaults(data)
	if err != nil {
		return nil, err
	}
	for _, f := range faults {
		if f.Machine != "" && !c.fleet.Matches(f.Machine) {
			return nil, notFoundError("machine " + f.Machine)
		}
	}
	for _, f := range faults {
		c.fleet.Inject(f)
	}
	return c.faults(r)
}

func (c *control) arrange(m *emulator.Machine, r *http.Request) error {
	trouble, found := emulator.LookupTrouble(r.PathValue("trouble"))
	if !found {
		return notFoundError("trouble " + r.PathValue("trouble"))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := m.Name() + "/" + trouble.Name
	if c.undo[key] != nil {
		return fmt.Errorf("trouble %s is at work on %s already: DELETE it first", trouble.Name, m.Name())
	}
	c.undo[key] = trouble.Arrange(m)
	return nil
}

func (c *control) end(m *emulator.Machine, r *http.Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := m.Name() + "/" + r.PathValue("trouble")
	undo := c.undo[key]
	if undo == nil {
		return notFoundError("trouble " + key)
	}
	delete(c.undo, key)
	undo()
	return nil
}
