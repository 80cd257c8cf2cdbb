// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe"
)

// openKinds are those that hold no secret, in which none may be found.
var openKinds = []schema.GroupVersionResource{
	v1alpha1.GroupVersion.WithResource("endpoints"), v1alpha1.GroupVersion.WithResource("bmcs"), v1alpha1.GroupVersion.WithResource("servers"),
	v1alpha1.GroupVersion.WithResource("serverclaims"), v1alpha1.GroupVersion.WithResource("serverbootconfigurations"),
	policyv1alpha1.GroupVersion.WithResource("policyrevisions"), policyv1alpha1.GroupVersion.WithResource("serverinventories"),
	policyv1alpha1.GroupVersion.WithResource("fleetcontrols"), policyv1alpha1.GroupVersion.WithResource("sanitizationrecords"),
	{Version: "v1", Resource: "configmaps"}, {Group: "events.k8s.io", Version: "v1", Resource: "events"},
	{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
}

// witness keeps every version of every object that it sees, and the contents of the manager's Secrets apart.
type witness struct {
	mu      sync.Mutex
	objects map[string]string // what was seen, by name and version
	secrets map[string]string // secret values, by what they are
}

func watchEverything(ctx context.Context, config *rest.Config) *witness {
	GinkgoHelper()
	w := &witness{objects: map[string]string{}, secrets: map[string]string{}}
	clients, err := dynamic.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	informers := dynamicinformer.NewDynamicSharedInformerFactory(clients, 0)
	watch := func(resource schema.GroupVersionResource, saw func(*unstructured.Unstructured)) {
		_, err := informers.ForResource(resource).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { saw(o.(*unstructured.Unstructured)) },
			UpdateFunc: func(_, o any) { saw(o.(*unstructured.Unstructured)) },
		})
		Expect(err).NotTo(HaveOccurred())
	}
	for _, kind := range openKinds {
		watch(kind, w.keep)
	}
	watch(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, w.learn)
	informers.Start(ctx.Done())
	for resource, synced := range informers.WaitForCacheSync(ctx.Done()) {
		Expect(synced).To(BeTrue(), resource.String())
	}
	return w
}

func (w *witness) keep(o *unstructured.Unstructured) {
	text, err := json.Marshal(o)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		text = []byte(err.Error())
	}
	w.objects[fmt.Sprintf("%s %s/%s version %s", o.GetKind(), o.GetNamespace(), o.GetName(), o.GetResourceVersion())] = string(text)
}

// learn finds the secret words in a Secret of the manager.
func (w *witness) learn(o *unstructured.Unstructured) {
	if o.GetNamespace() != managerNamespace {
		return
	}
	secret := &corev1.Secret{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, secret); err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if config, err := metalprobe.ParseIgnition(secret.Data["ignition"]); err == nil {
		w.secrets[fmt.Sprintf("the %s agent's token of entry %d for %s", config.Purpose, config.Entry, config.ServerUUID)] = config.Token
	}
	if lines := strings.Split(string(secret.Data["tls.key"]), "\n"); len(lines) > 3 {
		w.secrets["a line of the private key "+secret.Name] = lines[len(lines)/2]
	}
	if lines := strings.Split(string(secret.Data["ca.key"]), "\n"); len(lines) > 3 {
		w.secrets["a line of the authority's private key "+secret.Name] = lines[len(lines)/2]
	}
}

// saw says that a word stands in something that was seen.
func (w *witness) saw(word string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, text := range w.objects {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// secrets are all that the run had, by what they are.
func (r *fullRun) secrets() map[string]string {
	all := map[string]string{}
	for _, m := range r.machines {
		for i, token := range m.SessionTokens() {
			all[fmt.Sprintf("the token of session %d at %s", i+1, m.Name())] = token
		}
	}
	r.witness.mu.Lock()
	defer r.witness.mu.Unlock()
	for _, from := range []map[string]string{r.words, r.witness.secrets} {
		for name, word := range from {
			all[name] = word
		}
	}
	return all
}

// encodings are a word as it is and within something in base64, at each of the three places where it can begin there.
func encodings(word string) []string {
	all := []string{word}
	for lead := range 3 {
		text := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", lead) + word))
		// The first characters hold bits of what comes before, the last one those of what follows.
		all = append(all, text[(lead*8+5)/6:len(text)-1])
	}
	return all
}

// leaks lists where a secret is found, as it is or in base64.
func (r *fullRun) leaks(secrets map[string]string) []string {
	r.witness.mu.Lock()
	defer r.witness.mu.Unlock()
	var all []string
	for _, places := range []map[string]string{r.texts, r.witness.objects} {
		for place, text := range places {
			for name, word := range secrets {
				if slices.ContainsFunc(encodings(word), func(e string) bool { return strings.Contains(text, e) }) {
					all = append(all, name+" is in "+place)
				}
			}
		}
	}
	return all
}
