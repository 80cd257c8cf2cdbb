// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/index"
)

// BenchmarkAdmission is the review of one new claim from the bytes of the request to those of the answer, with feasibility over the
// whole fleet. Nothing satisfies most of the claims, which costs the most: every server is looked at. Each asks for something else
// than the one before, except where the name says so. p50-ms and p99-ms are of the wall time of a review, p99-cpu-ms is of the
// processor time of its thread, which other processes on the machine change little.
func BenchmarkAdmission(b *testing.B) {
	for _, servers := range []int{100, 1000, 10000} {
		w := newWorld(b, defaults(b))
		hooks, err := handlers(Options{Bundles: revisions{active: defaults(b)}, Client: w.cached, Reader: w.stored, Fleet: whole{benchmarkFleet(servers)},
			ManagerUser: manager, Registry: prometheus.NewRegistry()}, time.Now)
		if err != nil {
			b.Fatal(err)
		}
		hook := &admission.Webhook{Handler: hooks[PathValidateServerClaim]}
		all := []func(i int) func(*v1alpha1.ServerClaim){}
		for _, kind := range admissionKinds {
			all = append(all, kind.asks)
			b.Run(fmt.Sprintf("servers=%d/claim=%s", servers, kind.name), func(b *testing.B) { benchmarkAdmission(b, hook, kind.asks) })
		}
		b.Run(fmt.Sprintf("servers=%d/claim=mixed", servers), func(b *testing.B) {
			benchmarkAdmission(b, hook, func(i int) func(*v1alpha1.ServerClaim) { return all[i%len(all)](i) })
		})
	}
}

var admissionKinds = []struct {
	name string
	asks func(i int) func(*v1alpha1.ServerClaim)
}{
	{"feasible", func(i int) func(*v1alpha1.ServerClaim) { return selecting("row", strconv.Itoa(i%10)) }},
	{"selector", func(i int) func(*v1alpha1.ServerClaim) { return selecting("row", fmt.Sprint("none", i)) }},
	{"placement", func(i int) func(*v1alpha1.ServerClaim) {
		return placing(fmt.Sprintf("where: server.memoryGiB >= %d && server.rack != 'r1'", 4096+i))
	}},
	{"placement-again", func(int) func(*v1alpha1.ServerClaim) {
		return placing("where: server.memoryGiB >= 4096 && server.rack != 'r1'")
	}},
	{"alternatives", func(i int) func(*v1alpha1.ServerClaim) {
		return placing(fmt.Sprintf("alternatives: [{where: server.gpus > %d}, {where: server.cores > %d}, {where: server.zone == 'z%d'}]", i, 999+i, 99+i))
	}},
	{"gang", func(i int) func(*v1alpha1.ServerClaim) {
		return placing(fmt.Sprintf("where: server.memoryGiB >= 512\ngang: {name: g%d, size: 64}", i))
	}},
	{"spread", func(i int) func(*v1alpha1.ServerClaim) {
		return placing(fmt.Sprintf("where: server.cores > %d\nspread: {key: rack, claims: {matchLabels: {app: a%d}}}", 999+i, i))
	}},
}

// benchmarkFleet is a fleet in use, with what its agents reported.
func benchmarkFleet(n int) *index.Index {
	fleet := index.New()
	for i := range n {
		uuid := fmt.Sprintf("%08x-7742-3448-3784-823347823834", i)
		inventory := &policyv1alpha1.ServerInventory{Spec: policyv1alpha1.ServerInventorySpec{SystemUUID: uuid}, Report: &policyv1alpha1.ProbeReport{}}
		for range 2 {
			inventory.Report.Data.CPU = append(inventory.Report.Data.CPU, policyv1alpha1.CPU{TotalCores: 32, Model: "Xeon Gold 6338"})
		}
		for range 8 << (i % 3) {
			inventory.Report.Data.Memory = append(inventory.Report.Data.Memory, policyv1alpha1.MemoryDevice{SizeBytes: 32 << 30})
		}
		fleet.SawInventory(inventory)
		s := server(serverNamed(fmt.Sprintf("server-%05d", i)), func(s *v1alpha1.Server) {
			s.UID, s.Spec.SystemUUID, s.ResourceVersion = types.UID(uuid), uuid, strconv.Itoa(i+1)
			s.Labels = map[string]string{v1alpha1.ZoneLabel: fmt.Sprint("z", i%3), v1alpha1.InstanceTypeLabel: fmt.Sprint("type", i%4),
				"row": strconv.Itoa(i % 10), "owner": fmt.Sprint("team", i%7)}
			s.Annotations = map[string]string{policies.RackMetadata: fmt.Sprint("r", i/40)}
			s.Status.State, s.Status.PowerState = v1alpha1.StateAvailable, v1alpha1.PowerStateOff
			s.Status.Manufacturer, s.Status.Model = "Dell Inc.", "PowerEdge R750"
			s.Status.Lifecycle = &v1alpha1.LifecycleStatus{EnteredAt: metav1.NewMicroTime(time.Unix(1_790_000_000-int64(i), 0))}
			if i%3 > 0 {
				s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "team", Name: fmt.Sprint("c", i)}
				s.Status.State, s.Status.PowerState = v1alpha1.StateReserved, v1alpha1.PowerStateOn
			}
		})
		fleet.Saw(s)
		fleet.Get(s.Name).Candidate()
	}
	return fleet
}

func benchmarkAdmission(b *testing.B, hook http.Handler, asks func(i int) func(*v1alpha1.ServerClaim)) {
	b.ReportAllocs()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var took, used []time.Duration
	for b.Loop() {
		b.StopTimer()
		i := len(took)
		review := admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{UID: "1", Name: "c", Namespace: "team",
			Operation: admissionv1.Create, UserInfo: authenticationv1.UserInfo{Username: user},
			Object: apiruntime.RawExtension{Raw: raw(b, claim(asks(i)))}}}
		review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
		body, err := json.Marshal(review)
		if err != nil {
			b.Fatal(err)
		}
		req := httptest.NewRequestWithContext(b.Context(), http.MethodPost, PathValidateServerClaim, bytes.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		answer := httptest.NewRecorder()
		b.StartTimer()
		began, before := time.Now(), threadTime(b)
		hook.ServeHTTP(answer, req)
		took, used = append(took, time.Since(began)), append(used, threadTime(b)-before)
		b.StopTimer()
		var said admissionv1.AdmissionReview
		if err := json.Unmarshal(answer.Body.Bytes(), &said); err != nil || said.Response == nil || !said.Response.Allowed {
			b.Fatal(err, answer.Body)
		}
		b.StartTimer()
	}
	at := func(all []time.Duration, percent int) float64 {
		slices.Sort(all)
		return float64(all[len(all)*percent/100].Microseconds()) / 1000
	}
	b.ReportMetric(at(took, 50), "p50-ms")
	b.ReportMetric(at(took, 99), "p99-ms")
	b.ReportMetric(at(used, 99), "p99-cpu-ms")
}

func threadTime(b testing.TB) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
