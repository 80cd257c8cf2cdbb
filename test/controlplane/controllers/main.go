// SPDX-License-Identifier: Apache-2.0

// Command controllers runs the controllers of kube-controller-manager that tests and the demo need, with its own code:
// garbage collection, namespace deletion, default service accounts and aggregated roles. It needs a fifth of the
// packages that kube-controller-manager has beyond those of kube-apiserver.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
)

// The defaults of kube-controller-manager.
const (
	resync           = 12 * time.Hour
	namespaceResync  = 5 * time.Minute
	discoveryPeriod  = 30 * time.Second
	collectorWorkers = 20
	namespaceWorkers = 10
	roleWorkers      = 5
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the file that says where the API server is and who this program is")
	ready := flag.String("ready", "", "the file that is made once the controllers run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *ready); err != nil {
		fmt.Fprintln(os.Stderr, "controllers:", err)
		os.Exit(1)
	}
}

// run returns when the context ends, or at once where a controller cannot be made.
func run(ctx context.Context, kubeconfig, ready string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1 // the API server's own flow control is the limit
	p, err := newParts(config)
	if err != nil {
		return err
	}
	loops, err := p.controllers(ctx)
	if err != nil {
		return err
	}
	p.typed.Start(ctx.Done())
	p.metadata.Start(ctx.Done())
	close(p.started)
	var running sync.WaitGroup
	for _, loop := range loops {
		running.Go(func() { loop(ctx) })
	}
	for kind, synced := range p.typed.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("list %v: %w", kind, ctx.Err())
		}
	}
	if err := os.WriteFile(ready, nil, 0o600); err != nil {
		return err
	}
	running.Wait()
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil
	}
	return ctx.Err()
}

// parts is what the controllers share.
type parts struct {
	client   *kubernetes.Clientset
	objects  metadata.Interface
	typed    informers.SharedInformerFactory
	metadata metadatainformer.SharedInformerFactory
	started  chan struct{} // closed once both factories run
}

func newParts(config *rest.Config) (*parts, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &parts{
		client:   client,
		objects:  objects,
		typed:    informers.NewSharedInformerFactoryWithOptions(client, resync, informers.WithTransform(trim)),
		metadata: metadatainformer.NewSharedInformerFactoryWithOptions(objects, resync, metadatainformer.WithTransform(trim)),
		started:  make(chan struct{}),
	}, nil
}

// trim drops what no controller reads and what is large.
func trim(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

// controllers registers what each one watches; each function runs until its context ends.
func (p *parts) controllers(ctx context.Context) ([]func(context.Context), error) {
	namespaces := p.typed.Core().V1().Namespaces()
	accounts, err := serviceaccount.NewServiceAccountsController(klog.FromContext(ctx), p.typed.Core().V1().ServiceAccounts(),
		namespaces, p.client, serviceaccount.DefaultServiceAccountsControllerOptions())
	if err != nil {
		return nil, err
	}
	deleter := namespace.NewNamespaceController(ctx, p.client, p.objects, p.client.Discovery().ServerPreferredNamespacedResources,
		namespaces, namespaceResync, corev1.FinalizerKubernetes)
	roles := clusterroleaggregation.NewClusterRoleAggregation(p.typed.Rbac().V1().ClusterRoles(), p.client.RbacV1())
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(p.client.Discovery()))
	graph := garbagecollector.NewDependencyGraphBuilder(ctx, p.objects, mapper, garbagecollector.DefaultIgnoredResources(),
		informerfactory.NewInformerFactory(p.typed, p.metadata), p.started)
	collector, err := garbagecollector.NewComposedGarbageCollector(ctx, p.client, p.objects, mapper, graph)
	if err != nil {
		return nil, err
	}
	return []func(context.Context){
		func(ctx context.Context) { accounts.Run(ctx, 1) },
		func(ctx context.Context) { deleter.Run(ctx, namespaceWorkers) },
		func(ctx context.Context) { roles.Run(ctx, roleWorkers) },
		func(ctx context.Context) { collector.Run(ctx, collectorWorkers, discoveryPeriod) },
		func(ctx context.Context) { collector.Sync(ctx, p.client.Discovery(), discoveryPeriod) },
	}, nil
}
