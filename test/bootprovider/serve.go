// SPDX-License-Identifier: Apache-2.0

package bootprovider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
)

// server answers machines with what was prepared for them.
type server struct {
	client client.Client
	boots  *boots
	images map[string]Image
}

// handler serves the questions of a machine, with the statuses of boot-operator.
func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ipxe/{uuid}", s.ipxe)
	mux.HandleFunc("GET /ignition/{uuid}", s.ignition)
	mux.HandleFunc("GET /httpboot", s.httpboot)
	mux.HandleFunc("GET /image", s.image)
	return mux
}

// ipxe answers with a script. The UUID is compared as the server's spec has it, which is in lower case.
func (s *server) ipxe(w http.ResponseWriter, r *http.Request) {
	boot, status, err := s.boot(r.Context(), s.boots.matching(func(p prepared) bool { return p.uuid == r.PathValue("uuid") }))
	if err != nil {
		http.Error(w, err.Error(), status)
		return
	}
	// The machine is gone where a write fails; there is nobody to tell.
	_, _ = w.Write([]byte(s.script("http://"+r.Host, boot)))
	s.fetched(r.Context(), boot, metalv1alpha1.ConditionIPXEScriptFetched, "IPXEScriptDelivered")
}

// script is the iPXE script of boot-operator with its kernel command line. The comment is ours: it lets a test say which boot
// configuration a machine booted.
func (s *server) script(service string, boot prepared) string {
	layer := func(name string) string {
		image, version := splitImage(boot.image)
		return service + "/image?" + url.Values{"imageName": {image}, "version": {version}, "layerDigest": {name}}.Encode()
	}
	name, _ := splitImage(boot.image)
	image := s.images[name]
	var initrds []string
	for i := range image.Initramfs {
		initrds = append(initrds, "initrd "+layer(initrdLayer(i)))
	}
	if len(initrds) == 0 {
		initrds = []string{"initrd " + layer(initrdLayer(0))}
	}
	arguments := ""
	if image.Arguments != "" {
		arguments = " " + image.Arguments
	}
	note := boot.key.String()
	if boot.secret == "" {
		note += " without ignition"
	}
	return strings.Join([]string{
		"#!ipxe", "# boot configuration " + note,
		"set service " + service,
		"kernel " + layer("kernel") + " initrd=initrd gl.ovl=/:tmpfs gl.url=" + layer("squashfs") + " gl.live=1 ip=any ignition.firstboot=1" +
			" ignition.config.url=${service}/ignition/${uuid} ignition.platform.id=metal console=ttyS0,115200 console=tty0" +
			" console=ttyAMA0" + arguments,
		strings.Join(initrds, "\n"), "boot", "",
	}, "\n")
}

// initrdLayer names a part of an initramfs; boot-operator has one.
func initrdLayer(part int) string {
	if part == 0 {
		return "initrd"
	}
	return fmt.Sprintf("initrd%d", part)
}

// image answers with a layer of an image that the options name.
func (s *server) image(w http.ResponseWriter, r *http.Request) {
	image, known := s.images[r.URL.Query().Get("imageName")]
	if !known {
		http.NotFound(w, r)
		return
	}
	layer := r.URL.Query().Get("layerDigest")
	if layer == "kernel" {
		http.ServeFile(w, r, image.Kernel)
		return
	}
	for i, part := range image.Initramfs {
		if layer == initrdLayer(i) {
			http.ServeFile(w, r, part)
			return
		}
	}
	http.NotFound(w, r)
}

// splitImage takes an image reference apart; without tag and digest it is the latest.
func splitImage(image string) (name, version string) {
	if name, digest, has := strings.Cut(image, "@"); has {
		return name, digest
	}
	if colon := strings.LastIndex(image, ":"); colon > strings.LastIndex(image, "/") {
		return image[:colon], image[colon+1:]
	}
	return image, "latest"
}

// ignition answers with what the Secret holds. A boot configuration that names no Secret lets boot-operator's handler crash: the
// machine sees a connection that ends without an answer.
func (s *server) ignition(w http.ResponseWriter, r *http.Request) {
	uuid := r.PathValue("uuid")
	spelled := []string{uuid, strings.ToUpper(uuid), strings.ToLower(uuid)}
	boot, status, err := s.boot(r.Context(), s.boots.matching(func(p prepared) bool { return slices.Contains(spelled, p.uuid) }))
	if err != nil {
		http.Error(w, err.Error(), status)
		return
	}
	if boot.secret == "" {
		panic(http.ErrAbortHandler)
	}
	text, format, err := ignitionOf(r.Context(), s.client, client.ObjectKey{Namespace: boot.key.Namespace, Name: boot.secret})
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	served, err := render(text, format)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(served)
	s.fetched(r.Context(), boot, metalv1alpha1.ConditionIgnitionDataFetched, "IgnitionDataDelivered")
}

// httpboot answers a UEFI HTTP boot by the addresses that a DHCP server forwards, or else by the peer's own. A machine that is not
// known gets the default UKI, which starts nothing of ours.
func (s *server) httpboot(w http.ResponseWriter, r *http.Request) {
	peer, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	from := []string{peer}
	if forwarded := r.Header.Get("X-Forwarded-For"); forwarded != "" {
		from = strings.FieldsFunc(forwarded, func(c rune) bool { return c == ',' || c == ' ' })
	}
	answer := map[string]string{"ClientIPs": strings.Join(from, ","), "UKIURL": "http://" + r.Host + "/default-uki"}
	found := s.boots.matching(func(p prepared) bool {
		return slices.ContainsFunc(p.addresses, func(address string) bool { return slices.Contains(from, address) })
	})
	if len(found) > 0 {
		boot, status, err := s.boot(r.Context(), found)
		if err != nil {
			http.Error(w, err.Error(), status)
			return
		}
		image, version := splitImage(boot.image)
		answer["UKIURL"] = "http://" + r.Host + "/image?" + url.Values{"imageName": {image}, "version": {version}, "layerDigest": {"uki"}}.Encode()
		answer["SystemUUID"] = boot.uuid
	}
	text, err := json.Marshal(answer)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text)
}

// boot decides which of the boots that were prepared for a machine it gets: 404 without any, 500 where that is not clear.
func (s *server) boot(ctx context.Context, found []prepared) (boot prepared, status int, err error) {
	if len(found) == 0 {
		return prepared{}, http.StatusNotFound, errors.New("nothing is prepared for this machine")
	}
	var server metalv1alpha1.Server
	if len(found) > 1 {
		if err := s.client.Get(ctx, client.ObjectKey{Name: found[0].server}, &server); err != nil {
			return prepared{}, http.StatusInternalServerError, err
		}
	}
	boot, err = choose(found, &server)
	if err != nil {
		return prepared{}, http.StatusInternalServerError, err
	}
	return boot, http.StatusOK, nil
}

// fetched says on the boot configuration that a machine has fetched something, with the whole list of conditions and no lock.
func (s *server) fetched(ctx context.Context, boot prepared, kind, reason string) {
	var config metalv1alpha1.ServerBootConfiguration
	if err := s.client.Get(ctx, boot.key, &config); err != nil {
		return // it was deleted meanwhile, or will be fetched again
	}
	before := config.DeepCopy()
	if !meta.SetStatusCondition(&config.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason,
		Message: fmt.Sprintf("a machine with system UUID %s asked for it", boot.uuid), ObservedGeneration: config.Generation}) {
		return
	}
	err := client.IgnoreNotFound(s.client.Status().Patch(ctx, &config, client.MergeFrom(before)))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "condition not written", "bootConfiguration", boot.key, "type", kind)
	}
}

func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := server.Shutdown(closing); err != nil {
		_ = server.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
