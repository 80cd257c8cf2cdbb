// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"strings"
	"testing"

	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/restored"
)

func TestServersInDoubtAreListed(t *testing.T) {
	in := func(name, value string) metalv1alpha1.Server {
		s := metalv1alpha1.Server{}
		if s.Name = name; value != "" {
			s.Annotations = map[string]string{metalv1alpha1.RestoredDoubtAnnotation: value}
		}
		return s
	}
	for name, c := range map[string]struct {
		servers []metalv1alpha1.Server
		err     error
		verdict Verdict
		says    string
	}{
		"none":                       {[]metalv1alpha1.Server{in("a", "")}, nil, Passed, "none is in doubt"},
		"one that nobody compared":   {[]metalv1alpha1.Server{in("a", restored.Inspect), in("b", restored.Doubted)}, nil, Warned, "1 are in doubt since the cluster's store was restored, and are left as they are: b"},
		"one that is to be read":     {[]metalv1alpha1.Server{in("a", restored.Inspect)}, nil, Warned, "still to be read: a"},
		"what cannot be read is not": {nil, errors.New("forbidden"), Unknown, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			got := checkRestored(view{maintenance: maintenanceState{servers: c.servers}, maintenanceErr: c.err})
			if got.Verdict != c.verdict || !strings.Contains(got.Message, c.says) {
				t.Errorf("%+v", got)
			}
		})
	}
}
