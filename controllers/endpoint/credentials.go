// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

// maxAccounts is how many accounts of a Secret are read; each refused one is a failed login.
const maxAccounts = 16

// candidates are the factory accounts that may be tried, and where they come from. A change of the source's name means
// that they may have changed.
type candidates struct {
	accounts []redfish.Credentials
	source   string
}

// candidates reads the factory accounts of the row: its own, or those of the Secret that it names in the manager's
// namespace. A Secret that does not exist holds none.
func (v *scope) candidates(ctx context.Context) (candidates, error) {
	row := v.facts.row
	c := candidates{source: fmt.Sprintf("row %s of bundle %s", row.Prefix, bundleName(v.facts.revision))}
	for _, account := range row.DefaultCredentials {
		c.accounts = append(c.accounts, redfish.Credentials{Username: account.Username, Password: account.Password})
	}
	if row.CredentialsSecretRef == "" {
		return c, nil
	}
	secret := &corev1.Secret{}
	err := v.Reader.Get(ctx, types.NamespacedName{Namespace: v.Namespace, Name: row.CredentialsSecretRef}, secret)
	c.source = fmt.Sprintf("Secret %s/%s", v.Namespace, row.CredentialsSecretRef)
	if apierrors.IsNotFound(err) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("get %s: %w", c.source, err)
	}
	c.source += " at version " + secret.ResourceVersion
	c.accounts = accountsIn(secret)
	return c, nil
}

// accountsIn reads the keys username and password, and for further accounts username-2 and password-2 and so on, each
// without white space around it.
func accountsIn(s *corev1.Secret) []redfish.Credentials {
	var accounts []redfish.Credentials
	for i := 1; i <= maxAccounts; i++ {
		suffix := ""
		if i > 1 {
			suffix = "-" + strconv.Itoa(i)
		}
		username := bytes.TrimSpace(s.Data[v1alpha1.BMCSecretUsernameKey+suffix])
		password := bytes.TrimSpace(s.Data[v1alpha1.BMCSecretPasswordKey+suffix])
		if len(username) == 0 {
			break
		}
		accounts = append(accounts, redfish.Credentials{Username: string(username), Password: string(password)})
	}
	return accounts
}

// refusal says that no account was accepted. The same accounts at the same address give the same words, so that the
// status is also the memory of a manager that was restarted.
func (v *scope) refusal(c candidates) string {
	return fmt.Sprintf("the Redfish service at %s accepts none of the %d accounts of %s; they are not tried again for %s. Create the BMCSecret %s "+
		"with an account that it accepts", v.endpoint.Spec.IP, len(c.accounts), c.source, coolDown, v.endpoint.Name)
}

// rests is how long what the status records keeps the accounts from being offered: a manager that restarts again and
// again must not lock an account either.
func (v *scope) rests(refusal string) time.Duration {
	c := meta.FindStatusCondition(v.endpoint.Status.Conditions, v1alpha1.ConditionReady)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonCredentialsRefused || c.Message != refusal {
		return 0
	}
	// record sees to it that this is the time of the last refusal.
	return max(0, c.LastTransitionTime.Add(coolDown).Sub(v.now()))
}
