// SPDX-License-Identifier: Apache-2.0

package support

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/internal/redact"
	"github.com/metalaw/metalaw/internal/uuids"
)

// namespace is where config/default installs the manager.
const namespace = "metalaw-system"

// maxLog bounds what is read of one pod's log, in bytes.
const maxLog = 64 << 20

// bundle is what is gathered of one server.
type bundle struct {
	client.Client
	raw func(ctx context.Context, path string) ([]byte, error)

	files map[string][]byte
	// documents are what becomes a file of YAML once all was seen.
	documents map[string]any
	// notes say what is missing, and why.
	notes []string
	// names occur in the lines of a log that are about the server.
	names []string
	// values are secrets that must not occur in a file.
	values  [][]byte
	secrets redact.Redactor
}

// gather reads everything about one server. What cannot be read becomes a note, but for the Server itself.
func (b *bundle) gather(ctx context.Context, name string) error {
	var server metalv1alpha1.Server
	if err := b.Get(ctx, client.ObjectKey{Name: name}, &server); err != nil {
		return access.Explain(err, "get", access.Servers)
	}
	b.names = append(b.names, server.Name)
	b.add(&server, "server")
	b.bmc(ctx, &server)
	if ref := server.Spec.ServerClaimRef; ref != nil {
		b.names = append(b.names, ref.Name)
		b.object(ctx, &metalv1alpha1.ServerClaim{}, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, "serverclaim")
	}
	b.maintenances(ctx, &server)
	b.readinessRules(ctx)
	b.boots(ctx, &server)
	for _, uuid := range uuids.Spellings(strings.ToLower(server.Spec.SystemUUID)) {
		var inventory policyv1alpha1.ServerInventory
		if err := b.Get(ctx, client.ObjectKey{Name: uuid}, &inventory); err == nil {
			b.add(&inventory, "serverinventory")
		}
	}
	b.records(ctx, &server)
	b.object(ctx, &policyv1alpha1.FleetControl{}, client.ObjectKey{Name: policyv1alpha1.FleetControlName}, "fleetcontrol")
	b.events(ctx)
	b.logs(ctx)
	b.finish()
	return nil
}

// finish makes files of what was read. What was hidden at one place is hidden everywhere.
func (b *bundle) finish() {
	for i, note := range b.notes {
		b.notes[i] = b.secrets.Everywhere(b.secrets.Text(note))
	}
	for file, text := range b.files {
		b.files[file] = []byte(b.secrets.Everywhere(string(text)))
	}
	for file, document := range b.documents {
		text, err := yaml.Marshal(b.secrets.EverywhereIn(document))
		if err != nil {
			b.note("%s: %v", file, err)
			continue
		}
		b.files[file] = text
	}
}

// object reads one object into a file.
func (b *bundle) object(ctx context.Context, o client.Object, key client.ObjectKey, file string) bool {
	if err := b.Get(ctx, key, o); err != nil {
		b.note("%s %s: %v", file, strings.TrimPrefix(key.String(), "/"), err)
		return false
	}
	b.add(o, file)
	return true
}

func (b *bundle) note(format string, args ...any) {
	b.notes = append(b.notes, fmt.Sprintf(format, args...))
}

// add writes an object into a file, without what only the API server needs.
func (b *bundle) add(o client.Object, file string) {
	o.SetManagedFields(nil)
	annotations := o.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	o.SetAnnotations(annotations)
	b.put("objects/"+file+".yaml", o)
}

// put keeps a value for a file, without its secrets.
func (b *bundle) put(file string, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		b.note("%s: %v", file, err)
		return
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var document any
	if err := decoder.Decode(&document); err != nil {
		b.note("%s: %v", file, err)
		return
	}
	if b.documents == nil {
		b.documents = map[string]any{}
	}
	b.documents[file] = b.secrets.Document(document)
}

func (b *bundle) bmc(ctx context.Context, server *metalv1alpha1.Server) {
	if server.Spec.BMCRef == nil {
		return
	}
	var bmc metalv1alpha1.BMC
	if !b.object(ctx, &bmc, client.ObjectKey{Name: server.Spec.BMCRef.Name}, "bmc") {
		return
	}
	b.names = append(b.names, bmc.Name)
	if ref := bmc.Spec.EndpointRef; ref != nil {
		b.object(ctx, &metalv1alpha1.Endpoint{}, client.ObjectKey{Name: ref.Name}, "endpoint")
	}
	if bmc.Spec.BMCSecretRef.Name == "" {
		return
	}
	var credentials metalv1alpha1.BMCSecret
	if err := b.Get(ctx, client.ObjectKey{Name: bmc.Spec.BMCSecretRef.Name}, &credentials); err != nil {
		b.note("the bundle could not be compared with the BMCSecret, which is not in it: %v", err)
		return
	}
	if password, has := credentials.Data[metalv1alpha1.BMCSecretPasswordKey]; has {
		b.values = append(b.values, bytes.TrimSpace(password)) // as the manager uses it
	}
}

func (b *bundle) boots(ctx context.Context, server *metalv1alpha1.Server) {
	var boots metalv1alpha1.ServerBootConfigurationList
	if err := b.List(ctx, &boots); err != nil {
		b.note("serverbootconfigurations: %v", err)
		return
	}
	for i := range boots.Items {
		boot := &boots.Items[i]
		if boot.Spec.ServerRef.Name != server.Name {
			continue
		}
		b.names = append(b.names, boot.Name)
		if ref := boot.Spec.IgnitionSecretRef; ref != nil {
			var ignition corev1.Secret
			if err := b.Get(ctx, client.ObjectKey{Namespace: boot.Namespace, Name: ref.Name}, &ignition); err == nil {
				for _, value := range ignition.Data {
					b.values = append(b.values, value)
				}
			}
		}
		b.add(boot, "serverbootconfiguration-"+boot.Namespace+"-"+boot.Name)
	}
}

// maintenances are those that name the server, and the one that it names.
func (b *bundle) maintenances(ctx context.Context, server *metalv1alpha1.Server) {
	var all metalv1alpha1.ServerMaintenanceList
	if err := b.List(ctx, &all); err != nil {
		b.note("servermaintenances: %v", err)
		return
	}
	ref, found := server.Spec.ServerMaintenanceRef, false
	for i := range all.Items {
		m := &all.Items[i]
		holds := ref != nil && ref.Namespace == m.Namespace && ref.Name == m.Name
		if found = found || holds; holds || m.Spec.ServerRef.Name == server.Name {
			b.names = append(b.names, m.Name)
			b.add(m, "servermaintenance-"+m.Namespace+"-"+m.Name)
		}
	}
	if ref != nil && !found {
		b.note("servermaintenance %s/%s, which the server names, does not exist", ref.Namespace, ref.Name)
	}
}

// readinessRules are all of them: which of them match the server shows in its labels and taints.
func (b *bundle) readinessRules(ctx context.Context) {
	var all metalv1alpha1.ServerReadinessRuleList
	if err := b.List(ctx, &all); err != nil {
		b.note("serverreadinessrules: %v", err)
		return
	}
	for i := range all.Items {
		b.add(&all.Items[i], "serverreadinessrule-"+all.Items[i].Name)
	}
}

func (b *bundle) records(ctx context.Context, server *metalv1alpha1.Server) {
	var records policyv1alpha1.SanitizationRecordList
	if err := b.List(ctx, &records); err != nil {
		b.note("sanitizationrecords: %v", err)
		return
	}
	for i := range records.Items {
		r := &records.Items[i]
		if slices.Contains(uuids.Spellings(strings.ToLower(server.Spec.SystemUUID)), r.Spec.Machine.SystemUUID) {
			b.add(r, "sanitizationrecord-"+r.Name)
		}
	}
}

// events are those about the objects of the bundle.
func (b *bundle) events(ctx context.Context) {
	var all corev1.EventList
	if err := b.List(ctx, &all); err != nil {
		b.note("events: %v", err)
		return
	}
	found := []any{}
	for i := range all.Items {
		e := &all.Items[i]
		if slices.Contains(b.names, e.InvolvedObject.Name) {
			e.ManagedFields = nil
			found = append(found, e)
		}
	}
	b.put("events.yaml", found)
}

// logs keeps the lines of the managers' logs that name the server, its BMC, its claim or its boot configurations. With
// --log-level=debug they hold each Redfish request.
func (b *bundle) logs(ctx context.Context) {
	pods := &unstructured.UnstructuredList{}
	pods.SetAPIVersion("v1")
	pods.SetKind("PodList")
	if err := b.List(ctx, pods, client.InNamespace(namespace)); err != nil {
		b.note("pods: %v", err)
		return
	}
	if len(pods.Items) == 0 {
		b.note("no pod runs in namespace %s, so there is no log", namespace)
	}
	for i := range pods.Items {
		name := pods.Items[i].GetName()
		text, err := b.raw(ctx, fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/log?limitBytes=%d", namespace, name, maxLog))
		if err != nil {
			b.note("log of pod %s: %v", name, err)
			continue
		}
		b.files["logs/"+name+".log"] = b.secrets.Log(about(text, b.names))
	}
}

// about keeps the lines that name one of the names as a word of its own.
func about(text []byte, names []string) []byte {
	var kept bytes.Buffer
	for line := range bytes.Lines(text) {
		if slices.ContainsFunc(names, func(name string) bool { return mentions(line, name) }) {
			kept.Write(line)
		}
	}
	return kept.Bytes()
}

func mentions(line []byte, name string) bool {
	for rest := line; ; {
		i := bytes.Index(rest, []byte(name))
		if i < 0 || name == "" {
			return false
		}
		before := i == 0 || !isNameByte(rest[i-1])
		end := i + len(name)
		if before && (end == len(rest) || !isNameByte(rest[end])) {
			return true
		}
		rest = rest[end:]
	}
}

func isNameByte(c byte) bool {
	return c == '-' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
