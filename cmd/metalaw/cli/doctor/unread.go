// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// unread is the finding of a check whose reading failed, with the remedy that fits the error. What is missing has
// failed; what may not be read, or does not answer, is unknown.
func unread(check string, err error) finding {
	const cannot = "cannot be read: "
	switch status := apierrors.APIStatus(nil); {
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err) && errors.As(err, &status) && nameless(status):
		return finding{check, Failed, "the API server does not serve a kind that it takes: " + err.Error(),
			"apply the CRDs: kubectl apply --server-side -k config/crd"}
	case apierrors.IsNotFound(err):
		return finding{check, Failed, "something is missing: " + err.Error(), "install it: docs/install.md"}
	case apierrors.IsForbidden(err):
		return finding{check, Unknown, cannot + err.Error(),
			"run it with the rights of ClusterRole cluster-admin, or read this by hand"}
	case apierrors.IsUnauthorized(err):
		return finding{check, Unknown, cannot + err.Error(),
			"see the user of your kubeconfig context, or name another with --context"}
	case unanswered(err):
		return finding{check, Unknown, cannot + err.Error(),
			"see that the API server answers, and --kubeconfig and --context"}
	}
	return finding{check, Unknown, cannot + err.Error(), "see to what the error says, and run it again"}
}

// nameless says that what was not found is no object but the resource.
func nameless(status apierrors.APIStatus) bool {
	details := status.Status().Details
	return details == nil || details.Name == ""
}

// unanswered says that the API server did not answer.
func unanswered(err error) bool {
	return errors.As(err, new(*url.Error)) || errors.Is(err, context.DeadlineExceeded) || apierrors.IsTimeout(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err)
}

// answers asks the API server for its version, so that one that does not answer is told once and at once. An answer of
// any other kind will do.
func (r reader) answers(ctx context.Context) error {
	if _, err := r.raw(ctx, "/version"); err != nil && unanswered(err) {
		return usage.Unknown(access.Explain(err, "get", ""))
	}
	return nil
}

// ended is the exit code of some findings, as an error: a failed check, or else checks of which none could be made.
func ended(found []finding) error {
	unknown := 0
	for i := range found {
		switch found[i].Verdict {
		case Failed:
			return terminal.ErrIncomplete
		case Unknown:
			unknown++
		case Passed, Warned:
		}
	}
	if unknown > 0 && unknown == len(found) {
		return terminal.ErrUnknown
	}
	return nil
}
