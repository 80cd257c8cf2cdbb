// SPDX-License-Identifier: Apache-2.0

package access

import (
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
)

// Connection is the annotation of the flags that name the cluster and the user. Every command that works on a cluster
// has them, so that `metalaw options` shows them once, and no other help.
const Connection = "metalaw.dev/connection"

// IsConnection says that a flag names the cluster or the user.
func IsConnection(f *pflag.Flag) bool { return len(f.Annotations[Connection]) > 0 }

// connection are the names of these flags.
func connection(names clientcmd.ConfigOverrideFlags) []string {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	clientcmd.BindOverrideFlags(&clientcmd.ConfigOverrides{}, all, names)
	found := []string{"kubeconfig"}
	all.VisitAll(func(f *pflag.Flag) { found = append(found, f.Name) })
	return found
}
