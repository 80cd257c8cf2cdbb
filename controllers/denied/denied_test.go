// SPDX-License-Identifier: Apache-2.0

package denied

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/metalaw/metalaw/controllers/loop"
)

var boots = schema.GroupResource{Group: "metal.ironcore.dev", Resource: "serverbootconfigurations"}

// answer is an answer of the API server with a status code.
func answer(code int32, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: message}}
}

func TestAWriteThatFails(t *testing.T) {
	quota := apierrors.NewForbidden(boots, "c", errors.New("exceeded quota: small"))
	ending := apierrors.NewForbidden(boots, "c", errors.New("the namespace is being terminated"))
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"a quota":                            {quota, "Refused"},
		"a quota, in words of ours":          {fmt.Errorf("create: %w", quota), "Refused"},
		"a quota, beside another error":      {errors.Join(errors.New("more"), quota), "Refused"},
		"a schema":                           {answer(422, "spec.image: Required"), "Refused"},
		"a webhook with a code of its own":   {answer(418, "no"), "Refused"},
		"a webhook that could not be called": {answer(500, "failed calling webhook"), "APIError"},
		"another program was first":          {apierrors.NewConflict(boots, "c", errors.New("changed")), "LostRace"},
		"it exists":                          {apierrors.NewAlreadyExists(boots, "c"), "LostRace"},
		"its namespace ends":                 {ending, "APIError"},
		"the API server is busy":             {answer(429, "later"), "APIError"},
		"a token that has run out":           {answer(401, "who"), "APIError"},
		"an object that is gone":             {apierrors.NewNotFound(boots, "c"), "APIError"},
		"no answer":                          {errors.New("connection reset"), "APIError"},
	} {
		p := Write(c.err, "Refused", "the ServerBootConfiguration ns/c")
		if p.Reason != c.want || (p.Err != nil) != (c.want == "APIError") || By(c.err) != (c.want == "Refused") {
			t.Errorf("%s: %s, %v, refused %t", name, p.Reason, p.Err, By(c.err))
		}
	}
}

func TestARefusalQuotesTheAPIServer(t *testing.T) {
	err := fmt.Errorf("create: %w", answer(403, strings.Repeat("why ", 1000)))
	p := Write(err, "Refused", "the Secret ns/c")
	if p.Phase != loop.Failed || p.Again != Again || len(p.Message) > 1024+200 || !strings.Contains(p.Message, "the Secret ns/c. ") {
		t.Errorf("phase %d, again in %s, %d bytes: %s", p.Phase, p.Again, len(p.Message), p.Message)
	}
}
