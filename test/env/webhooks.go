// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"fmt"
	"net"
	"strconv"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
)

// The names that the shipped manifests give to the webhook configurations.
const (
	ValidatingWebhooks = "metalaw-validating"
	MutatingWebhooks   = "metalaw-mutating"
)

// PointWebhooksAt makes the API server call a webhook server that runs as a local process at
// address ("127.0.0.1:9443"). The configurations stay as shipped but for the port: the Service
// they name becomes an alias of the host, so the certificate is still checked for the Service's
// name, and a rotator that injects its own CA goes on working.
//
// caPEM is the authority to trust; nil leaves the CA bundle to such a rotator. Calling it again
// moves the webhooks to the new address. Applying config/default undoes it.
func (e *Env) PointWebhooksAt(ctx context.Context, address string, caPEM []byte) error {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("webhook address %q: %w", address, err)
	}
	port, err := strconv.ParseInt(portText, 10, 32)
	if err != nil {
		return fmt.Errorf("webhook address %q: port: %w", address, err)
	}
	clients, err := kubernetes.NewForConfig(e.Config)
	if err != nil {
		return err
	}
	services, err := updateClientConfigs(ctx, clients, func(c *admissionv1.WebhookClientConfig) {
		if c.Service == nil {
			return
		}
		c.Service.Port = ptr.To(int32(port))
		if caPEM != nil {
			c.CABundle = caPEM
		}
	})
	if err != nil {
		return fmt.Errorf("point the webhooks at %s: %w", address, err)
	}
	for service := range services {
		if err := aliasService(ctx, clients, service, host, int32(port)); err != nil {
			return fmt.Errorf("point the webhooks at %s: %w", address, err)
		}
	}
	return nil
}

// RemoveWebhooks deletes both webhook configurations, for tests that are not about admission and
// run no webhook server. Missing ones are fine.
func (e *Env) RemoveWebhooks(ctx context.Context) error {
	clients, err := kubernetes.NewForConfig(e.Config)
	if err != nil {
		return err
	}
	api := clients.AdmissionregistrationV1()
	err = api.ValidatingWebhookConfigurations().Delete(ctx, ValidatingWebhooks, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	err = api.MutatingWebhookConfigurations().Delete(ctx, MutatingWebhooks, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// ServingCert signs a certificate for a webhook server that is reached through the Service, with
// the authority to give to PointWebhooksAt. For servers that do not bring their own.
func (e *Env) ServingCert(namespace, service string) (certPEM, keyPEM, caPEM []byte, err error) {
	certPEM, keyPEM, err = e.pki.server(service + "." + namespace + ".svc")
	return certPEM, keyPEM, e.pki.caPEM, err
}

type serviceKey struct{ namespace, name string }

// updateClientConfigs changes every client configuration of both kinds and returns the Services
// that they name.
func updateClientConfigs(ctx context.Context, clients kubernetes.Interface,
	change func(*admissionv1.WebhookClientConfig),
) (map[serviceKey]struct{}, error) {
	services := map[serviceKey]struct{}{}
	visit := func(c *admissionv1.WebhookClientConfig) {
		change(c)
		if c.Service != nil {
			services[serviceKey{c.Service.Namespace, c.Service.Name}] = struct{}{}
		}
	}
	api := clients.AdmissionregistrationV1()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		config, err := api.ValidatingWebhookConfigurations().Get(ctx, ValidatingWebhooks, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for i := range config.Webhooks {
			visit(&config.Webhooks[i].ClientConfig)
		}
		_, err = api.ValidatingWebhookConfigurations().Update(ctx, config, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return nil, err
	}
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		config, err := api.MutatingWebhookConfigurations().Get(ctx, MutatingWebhooks, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for i := range config.Webhooks {
			visit(&config.Webhooks[i].ClientConfig)
		}
		_, err = api.MutatingWebhookConfigurations().Update(ctx, config, metav1.UpdateOptions{})
		return err
	})
	return services, err
}

// aliasService makes a Service stand for another host. The API server resolves the Services of
// webhooks itself: one of type ExternalName by its external name, at the webhook's port.
func aliasService(ctx context.Context, clients kubernetes.Interface, key serviceKey, host string, port int32) error {
	services := clients.CoreV1().Services(key.namespace)
	spec := corev1.ServiceSpec{
		Type:         corev1.ServiceTypeExternalName,
		ExternalName: host,
		Ports:        []corev1.ServicePort{{Name: "alias", Port: port}}, // not the shipped name, which an apply brings back
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		service, err := services.Get(ctx, key.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		service.Spec = spec
		_, err = services.Update(ctx, service, metav1.UpdateOptions{})
		return err
	})
}
