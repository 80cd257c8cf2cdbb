// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestAnInventoryKeepsItsMarks(t *testing.T) {
	type inventory = policyv1alpha1.ServerInventory
	of := func(change ...func(*inventory)) *inventory {
		i := dirtyInventory()
		for _, c := range change {
			c(i)
		}
		return i
	}
	clean := func(i *inventory) { i.Custody = nil }
	unmarked := func(i *inventory) { i.Custody.Marks = nil }
	more := func(i *inventory) { i.Custody.Marks = append(i.Custody.Marks, "Managed") }
	agreed := func(i *inventory) { metav1.SetMetaDataAnnotation(&i.ObjectMeta, v1alpha1.DeleteDataAnnotation, "true") }
	labelled := func(i *inventory) { i.Labels = map[string]string{"a": "b"} }
	const denied = "Forbidden\ncustody.marks: Forbidden: the inventory remembers what the disks of machine " + uuid + " may hold (Dirty). Only the manager " +
		"takes that away, when they were wiped; release the server and let it be wiped, or to let it go all the same, " +
		"set annotation policy.metalaw.dev/delete-data: \"true\" first"
	warned := []string{"machine " + uuid + " is no longer known to bear Dirty; nothing erases its disks, and it may be offered with what is on them"}
	stranger := func(i *inventory) { i.Custody.Marks = []string{"Stranger"} }
	const foundRunning = "Forbidden\ncustody.marks: Forbidden: the inventory remembers that machine " + uuid + " was found running. Only the manager " +
		"takes that away, when the machine is given to it; set annotation policy.metalaw.dev/consent=take-over on its Server, " +
		"or to let it go all the same, set annotation policy.metalaw.dev/delete-data: \"true\" first"
	forgotten := []string{"machine " + uuid + " is no longer known to have been found running; once it is off it may be booted and offered, even if another program runs it"}
	for name, c := range map[string]struct {
		before, after *inventory
		who           string
		want          string
		warnings      []string
	}{
		"a dirty machine's is not deleted":                 {before: of(), want: denied},
		"a clean machine's is":                             {before: of(clean)},
		"with the annotation a dirty one's is":             {before: of(agreed), warnings: warned},
		"the manager deletes it":                           {before: of(), who: manager},
		"a mark is not taken away":                         {before: of(), after: of(unmarked), want: denied},
		"nor the custody as a whole":                       {before: of(), after: of(clean), want: denied},
		"with the annotation a mark is":                    {before: of(agreed), after: of(unmarked, agreed), warnings: warned},
		"the manager takes a mark away":                    {before: of(), after: of(unmarked), who: manager},
		"nor that it was found running":                    {before: of(stranger), after: of(unmarked), want: foundRunning},
		"with the annotation that is":                      {before: of(stranger, agreed), warnings: forgotten},
		"a mark may be added, and other things may change": {before: of(), after: of(more, labelled)},
	} {
		t.Run(name, func(t *testing.T) {
			if c.who == "" {
				c.who = user
			}
			w := newWorld(t, defaults(t))
			var got string
			var warnings []string
			if c.after == nil {
				got, warnings = w.ask(PathValidateInventory, c.who, admissionv1.Delete, c.before, nil)
			} else {
				got, warnings = w.ask(PathValidateInventory, c.who, admissionv1.Update, c.before, c.after)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.warnings, warnings); diff != "" {
				t.Error(diff)
			}
		})
	}
}
