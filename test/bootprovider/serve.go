// SPDX-License-Identifier: Apache-2.0

package bootprovider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
)

// bootAnswer is what a machine gets.
type bootAnswer struct {
	Image    string  `json:"image"`
	Ignition *string `json:"ignition"`
	SBC      string  `json:"sbc"`
}

// Handler serves GET /boot/{systemUUID}: the boot configuration that the server names, once it is Ready.
// 404 is an unknown server, 500 a server for which nothing is ready. reader must serve Indexes.
func Handler(reader client.Reader) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /boot/{uuid}", func(w http.ResponseWriter, request *http.Request) {
		status, answer, err := boot(request.Context(), reader, strings.ToLower(request.PathValue("uuid")))
		if err != nil {
			http.Error(w, err.Error(), status)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		// The machine is gone where this fails; there is nobody to tell.
		_ = json.NewEncoder(w).Encode(answer)
	})
	return mux
}

func boot(ctx context.Context, reader client.Reader, uuid string) (status int, answer bootAnswer, err error) {
	var servers metalv1alpha1.ServerList
	if err := reader.List(ctx, &servers, client.MatchingFields{indexServerUUID: uuid}); err != nil {
		return http.StatusInternalServerError, bootAnswer{}, err
	}
	if len(servers.Items) == 0 {
		return http.StatusNotFound, bootAnswer{}, fmt.Errorf("no server has system UUID %q", uuid)
	}
	server := &servers.Items[0]
	ref := server.Spec.BootConfigurationRef
	if ref == nil {
		return http.StatusInternalServerError, bootAnswer{}, fmt.Errorf("server %s names no boot configuration", server.Name)
	}
	var config metalv1alpha1.ServerBootConfiguration
	if err := reader.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, &config); err != nil {
		return http.StatusInternalServerError, bootAnswer{}, err
	}
	if config.Spec.ServerRef.Name != server.Name || config.Status.State != metalv1alpha1.ServerBootConfigurationStateReady {
		return http.StatusInternalServerError, bootAnswer{},
			fmt.Errorf("boot configuration %s/%s is %q for server %q", ref.Namespace, ref.Name, config.Status.State, config.Spec.ServerRef.Name)
	}
	ignition, err := ignitionOf(ctx, reader, &config)
	if err != nil {
		return http.StatusInternalServerError, bootAnswer{}, err
	}
	return http.StatusOK, bootAnswer{Image: config.Spec.Image, Ignition: ignition, SBC: ref.Namespace + "/" + ref.Name}, nil
}

func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
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
