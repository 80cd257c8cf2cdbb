// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
)

// recorder stands between the manager and the API server, and beside the BMCs. It puts everything into one order: a write
// to the API counts from the moment at which its answer came, a read from when it was asked, a write to a BMC from its arrival.
type recorder struct {
	mu sync.Mutex
	// now counts what was recorded.
	now     int
	servers map[string]*server
	// names are the servers by system UUID.
	names map[string]string
	// shown are the resourceVersions of Servers that the manager was shown by a list, a watch or a live read.
	shown map[string]bool
	// statuses and mains are the resourceVersions that its own patches of Servers made.
	statuses, mains map[string]bool
	// boots and secrets are when each boot configuration and each Secret of the manager's namespace was made last.
	boots, secrets map[string]int
	// together counts the reconciles that patched both, the main part first.
	together int
	faults   []string
}

// server is what was recorded of one server.
type server struct {
	name    string
	stored  *v1alpha1.Server
	kept    *policyv1alpha1.ServerInventory
	entries []*entry
	reads   []read
	// recorded is when a request or an operation was last stored, written when its BMC was last asked to change something.
	recorded, written int
}

// entry is one stay in a state.
type entry struct {
	key    string
	number int64
	// first is when each kind of event was recorded first.
	first map[string]int
	// guards are what was read past the cache before each write of a kind to the BMC, every time.
	guards map[string][]string
	events []string
}

// read is one read past the cache, of an object that concerns the server.
type read struct {
	what         string
	begun, ended int
	server       *v1alpha1.Server // where it is what was read
}

func newRecorder() *recorder {
	return &recorder{servers: map[string]*server{}, names: map[string]string{}, shown: map[string]bool{},
		statuses: map[string]bool{}, mains: map[string]bool{},
		boots: map[string]int{}, secrets: map[string]int{}}
}

// through has everything that is sent to the API server recorded.
func (r *recorder) through(next http.RoundTripper) http.RoundTripper {
	return passing(func(request *http.Request) (*http.Response, error) { return r.pass(next, request) })
}

type passing func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (p passing) RoundTrip(request *http.Request) (*http.Response, error) { return p(request) }

// pass sends a request on, and records it with its answer.
func (r *recorder) pass(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	kind, name, sub := resource(request.URL.Path)
	if kind == "" {
		return next.RoundTrip(request)
	}
	var sent []byte
	if request.Body != nil && request.Method != http.MethodGet {
		var err error
		if sent, err = io.ReadAll(request.Body); err != nil {
			return nil, err
		}
		request.Body = io.NopCloser(bytes.NewReader(sent))
	}
	begun := r.begins(kind, name, sub, request.Method, sent)
	response, err := next.RoundTrip(request)
	if err == nil && response.StatusCode == http.StatusNotFound && request.Method == http.MethodGet {
		r.readNothing(kind, name, begun)
	}
	if err != nil || response.StatusCode >= http.StatusBadRequest {
		return response, err
	}
	if watches := request.URL.Query().Get("watch"); watches == "true" || watches == "1" {
		if kind == "servers" {
			response.Body = delayed(response.Body, r.sees)
		}
		return response, nil
	}
	body, err := io.ReadAll(response.Body)
	if err := response.Body.Close(); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	r.answered(kind, name, sub, request.Method, begun, body)
	return response, nil
}

// resource takes apart the path of a request that matters.
func resource(path string) (kind, name, sub string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i, part := range parts {
		switch part {
		case "servers", "serverinventories", "serverclaims", "bmcs", "serverbootconfigurations", "secrets":
			rest := append(parts[i+1:], "", "")
			return part, rest[0], rest[1]
		}
	}
	return "", "", ""
}

// begins records that a request was sent.
func (r *recorder) begins(kind, name, sub, method string, sent []byte) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now++
	var base struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if kind != "servers" || method != http.MethodPatch || json.Unmarshal(sent, &base) != nil || r.shown[base.Metadata.ResourceVersion] {
		return r.now
	}
	switch version := base.Metadata.ResourceVersion; {
	case sub == "" && r.statuses[version]: // it relies on what it just wrote itself, so it is of the same reconcile
		r.fault("%s: the status was patched before the main part", name)
	case sub == "status" && r.mains[version]:
		r.together++
	}
	return r.now
}

// answered records what came of a request.
func (r *recorder) answered(kind, name, sub, method string, begun int, body []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now++
	live := method == http.MethodGet && name != ""
	switch kind {
	case "servers":
		if name == "" && method == http.MethodGet {
			r.listed(body)
			return
		}
		s := &v1alpha1.Server{}
		if json.Unmarshal(body, s) != nil || s.Name == "" {
			return
		}
		w := r.server(s.Name)
		r.names[strings.ToLower(s.Spec.SystemUUID)] = s.Name
		if live {
			r.shown[s.ResourceVersion] = true
			w.reads = append(w.reads, read{what: "Server", begun: begun, ended: r.now, server: s})
		} else if method == http.MethodPatch {
			map[bool]map[string]bool{true: r.statuses, false: r.mains}[sub == "status"][s.ResourceVersion] = true
		}
		r.stored(w, s, live)
	case "serverinventories":
		i := &policyv1alpha1.ServerInventory{}
		if json.Unmarshal(body, i) != nil || i.Name == "" || r.names[strings.ToLower(i.Name)] == "" {
			return
		}
		w := r.server(r.names[strings.ToLower(i.Name)])
		if live {
			w.reads = append(w.reads, read{what: "ServerInventory", begun: begun, ended: r.now})
		}
		r.custody(w, i, live)
	case "serverclaims", "bmcs":
		if live {
			r.readsOf(kind, name, begun)
		}
	case "serverbootconfigurations", "secrets":
		if method == http.MethodPost || method == http.MethodPut {
			r.made(kind, body)
		}
	}
}

// made notes a boot configuration that was made, or a Secret that was made or replaced.
func (r *recorder) made(kind string, body []byte) {
	if kind == "secrets" {
		var wrapped runtime.Unknown
		secret := &corev1.Secret{}
		if raw, is := bytes.CutPrefix(body, []byte("k8s\x00")); is && wrapped.Unmarshal(raw) == nil && secret.Unmarshal(wrapped.Raw) == nil {
			r.secrets[secret.Namespace+"/"+secret.Name] = r.now
		}
		return
	}
	boot := &v1alpha1.ServerBootConfiguration{}
	if json.Unmarshal(body, boot) == nil && boot.Namespace == namespace {
		r.boots[boot.Namespace+"/"+boot.Name] = r.now
		r.event(r.server(boot.Spec.ServerRef.Name), "boot made")
	}
}

// readNothing notes a read of what does not exist, which is a read.
func (r *recorder) readNothing(kind, name string, begun int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now++
	if w := r.servers[r.names[strings.ToLower(name)]]; kind == "serverinventories" && w != nil {
		w.reads = append(w.reads, read{what: "ServerInventory", begun: begun, ended: r.now})
	}
	r.readsOf(kind, name, begun)
}

// readsOf notes that what a server names was read.
func (r *recorder) readsOf(kind, name string, begun int) {
	for _, w := range r.servers {
		if w.stored == nil {
			continue
		}
		claim, bmc := w.stored.Spec.ServerClaimRef, w.stored.Spec.BMCRef
		if kind == "bmcs" && bmc != nil && bmc.Name == name {
			w.reads = append(w.reads, read{what: "BMC", begun: begun, ended: r.now})
		}
		if kind == "serverclaims" && claim != nil && name == claim.Name {
			w.reads = append(w.reads, read{what: "ServerClaim", begun: begun, ended: r.now})
		}
	}
}

func (r *recorder) listed(body []byte) {
	var all v1alpha1.ServerList
	if json.Unmarshal(body, &all) == nil {
		for i := range all.Items {
			r.shown[all.Items[i].ResourceVersion] = true
		}
	}
}

// sees notes that a watch showed the manager a Server.
func (r *recorder) sees(line []byte) {
	var e struct{ Object v1alpha1.Server }
	if json.Unmarshal(line, &e) != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown[e.Object.ResourceVersion] = true
}

func (r *recorder) server(name string) *server {
	if r.servers[name] == nil {
		r.servers[name] = &server{name: name}
	}
	return r.servers[name]
}

// older says that an object is older than what is known already.
func older(version, known string) bool {
	a, err1 := strconv.ParseUint(version, 10, 64)
	b, err2 := strconv.ParseUint(known, 10, 64)
	return err1 == nil && err2 == nil && a <= b
}

// stored records in what a Server differs from how it was stored before.
func (r *recorder) stored(w *server, s *v1alpha1.Server, live bool) {
	was := w.stored
	if was == nil {
		was = &v1alpha1.Server{}
	} else if was.UID == s.UID && older(s.ResourceVersion, was.ResourceVersion) {
		return
	}
	w.stored = s
	before, now := lifecycleOf(was), lifecycleOf(s)
	if s.Status.Lifecycle != nil && (was.Status.Lifecycle == nil || before.Entry != now.Entry) {
		rule := now.Rule
		if rule == "" {
			rule = "the beginning"
		}
		w.entries = append(w.entries, &entry{key: string(s.Status.State) + " by " + rule, number: now.Entry,
			first: map[string]int{}, guards: map[string][]string{}})
		r.event(w, "move stored")
	}
	for _, mark := range without(now.Marks, before.Marks) {
		r.event(w, "status gains "+mark)
		if mark == policies.MarkDirty && !slices.Contains(custodyOf(w.kept).Marks, mark) {
			r.fault("%s: the status got the mark %s before custody did", w.name, mark)
		}
	}
	for _, mark := range without(before.Marks, now.Marks) {
		r.event(w, "status loses "+mark)
	}
	if q := now.Request; q != nil && (before.Request == nil || before.Request.Action != q.Action || !before.Request.AskedAt.Equal(&q.AskedAt)) {
		r.event(w, "request "+string(q.Action)+" stored")
		w.recorded = r.now
	}
	if op := s.Status.Operation; op != nil && op.State == v1alpha1.OperationInProgress &&
		(was.Status.Operation == nil || was.Status.Operation.ID != op.ID || was.Status.Operation.State != op.State) {
		r.event(w, "operation stored")
		w.recorded = r.now
	}
	r.mainEvents(w, was, s)
	if slices.Contains(s.Finalizers, v1alpha1.FinalizerServer) && !slices.Contains(was.Finalizers, v1alpha1.FinalizerServer) && !live {
		r.event(w, "finalizer stored")
		if was.Status.Lifecycle == nil {
			r.fault("%s: the finalizer was stored before the lifecycle", w.name)
		}
	}
}

// mainEvents records what changed in metadata and spec.
func (r *recorder) mainEvents(w *server, was, s *v1alpha1.Server) {
	if is, had := s.Spec.ServerClaimRef != nil, was.Spec.ServerClaimRef != nil; is != had {
		r.event(w, map[bool]string{true: "claim named", false: "claim not named"}[is])
	}
	if is, had := s.Annotations[v1alpha1.ClaimUIDAnnotation] != "", was.Annotations[v1alpha1.ClaimUIDAnnotation] != ""; is != had {
		r.event(w, map[bool]string{true: "holder named", false: "holder forgotten"}[is])
	}
	if is, had := s.Annotations[v1alpha1.ReleasedClaimAnnotation] != "", was.Annotations[v1alpha1.ReleasedClaimAnnotation] != ""; is && !had {
		r.event(w, "release stored")
	}
	if ref, had := s.Spec.BootConfigurationRef, was.Spec.BootConfigurationRef; ref != nil && (had == nil || *had != *ref) {
		r.event(w, "boot named")
	}
}

// custody records in what the custody of a machine differs from how it was stored before.
func (r *recorder) custody(w *server, i *policyv1alpha1.ServerInventory, live bool) {
	if w.kept != nil && w.kept.UID == i.UID && older(i.ResourceVersion, w.kept.ResourceVersion) {
		return
	}
	was, now := custodyOf(w.kept), custodyOf(i)
	w.kept = i
	if live {
		return // its writer was recorded, or is not the manager
	}
	for _, mark := range without(now.Marks, was.Marks) {
		r.event(w, "custody gains "+mark)
	}
	for _, mark := range without(was.Marks, now.Marks) {
		r.event(w, "custody loses "+mark)
	}
	if is, had := now.LastHolder != nil, was.LastHolder != nil; is != had {
		r.event(w, map[bool]string{true: "custody gains its holder", false: "custody loses its holder"}[is])
	}
	if is, had := now.Clean != nil, was.Clean != nil; is != had {
		r.event(w, map[bool]string{true: "custody gains its clean record", false: "custody loses its clean record"}[is])
	}
}

func custodyOf(i *policyv1alpha1.ServerInventory) policyv1alpha1.Custody {
	if i == nil || i.Custody == nil {
		return policyv1alpha1.Custody{}
	}
	return *i.Custody
}

func lifecycleOf(s *v1alpha1.Server) v1alpha1.LifecycleStatus {
	if s.Status.Lifecycle == nil {
		return v1alpha1.LifecycleStatus{}
	}
	return *s.Status.Lifecycle
}

// without is what is in all and not in some.
func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(one string) bool { return slices.Contains(some, one) })
}
