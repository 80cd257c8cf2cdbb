// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/metalaw/metalaw/redfish"
)

func TestFactoryAccountsAreReadWithoutWhiteSpaceAroundThem(t *testing.T) {
	secret := &corev1.Secret{Data: map[string][]byte{
		"username": []byte("root\n"), "password": []byte("calvin\n"), "username-2": []byte("admin"), "password-2": []byte(" pass word "),
		"username-3": []byte("\n"), "password-3": []byte("x"), "username-4": []byte("late"),
	}}
	want := []redfish.Credentials{{Username: "root", Password: "calvin"}, {Username: "admin", Password: "pass word"}}
	if diff := cmp.Diff(want, accountsIn(secret)); diff != "" {
		t.Error(diff)
	}
}
