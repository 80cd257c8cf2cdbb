// SPDX-License-Identifier: Apache-2.0

package bootservice

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/bootserver"
)

// asksFrom fetches an ignition from an address of this host.
func asksFrom(t *testing.T, source, service string) (status int, body string) {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
	transport := &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}
	url := "http://" + service + "/ignition/" + strings.ToUpper(uuid)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestAStrangerGetsNoIgnitionOfAClaim(t *testing.T) {
	w := newWorld(t, full, func(w *world) {
		w.server.Status.NetworkInterfaces = []v1alpha1.NetworkInterface{{Name: "eth0", MACAddress: "52:54:00:aa:bb:01", IPs: []string{"127.0.0.1"}}}
		w.boot.Annotations = map[string]string{v1alpha1.BootPurposeAnnotation: v1alpha1.BootPurposeClaim,
			v1alpha1.BootIgnitionAnnotation: v1alpha1.IgnitionUntilFirstSign}
		w.secret.Data["ignition"] = []byte(`{"ignition":{"version":"3.4.0"}}`)
	})
	w.reconcile(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	handler := bootserver.Machines(bootserver.Options{Source: w.Source, Images: w.Images, URL: "http://boot.example", Arch: "amd64", Log: log})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- bootserver.Serve(ctx, listener, handler, nil, log) }()
	service := listener.Addr().String()

	if status, body := asksFrom(t, "127.0.0.9", service); status != http.StatusNotFound || strings.Contains(body, "ignition") {
		t.Errorf("a stranger: %d %q", status, body)
	}
	told := meta.FindStatusCondition(w.reconcile(t).Status.Conditions, v1alpha1.ConditionIgnitionRefused)
	if told == nil || told.Reason != string(bootserver.RefusalAnotherAddress) {
		t.Errorf("the refusal is not told: %+v", told)
	}
	if status, body := asksFrom(t, "127.0.0.1", service); status != http.StatusOK || !strings.Contains(body, "3.4.0") {
		t.Errorf("the machine: %d %q", status, body)
	}
	boot := w.reconcile(t)
	told = meta.FindStatusCondition(boot.Status.Conditions, v1alpha1.ConditionIgnitionRefused)
	if told != nil {
		t.Errorf("the refusal is told after the machine got its ignition: %+v", boot.Status.Conditions)
	}
	meta.SetStatusCondition(&boot.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionBootStateReceived, Status: metav1.ConditionTrue, Reason: "Booted"})
	if err := w.Client.Status().Update(t.Context(), boot); err != nil {
		t.Fatal(err)
	}
	if status, _ := asksFrom(t, "127.0.0.1", service); status != http.StatusNotFound {
		t.Errorf("the machine after its first sign: %d", status)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
