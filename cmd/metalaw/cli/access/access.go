// SPDX-License-Identifier: Apache-2.0

// Package access reaches the API server with the rights of whoever runs the command.
package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// FieldManager is the name under which the commands write.
const FieldManager = "metalaw-cli"

// Flags name the cluster and the user, as kubectl's flags of the same names do.
type Flags struct {
	kubeconfig string
	overrides  clientcmd.ConfigOverrides
}

// Register adds the flags to a command and those below it.
func (f *Flags) Register(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig file; empty uses $KUBECONFIG, ~/.kube/config, or the pod's service account")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	// A command about objects in a namespace has a flag of its own, and the API server has had no passwords for years.
	names.ContextOverrideFlags.Namespace, names.AuthOverrideFlags.Username, names.AuthOverrideFlags.Password = none, none, none
	for flag, usage := range map[*clientcmd.FlagInfo]string{
		&names.CurrentContext:                             "context of the kubeconfig",
		&names.Timeout:                                    "how long a request may take, such as 30s; 0 is for ever",
		&names.ContextOverrideFlags.ClusterName:           "cluster of the kubeconfig",
		&names.ContextOverrideFlags.AuthInfoName:          "user of the kubeconfig",
		&names.AuthOverrideFlags.ClientCertificate:        "file with a client certificate",
		&names.AuthOverrideFlags.ClientKey:                "file with the key of the client certificate",
		&names.AuthOverrideFlags.Token:                    "bearer token",
		&names.AuthOverrideFlags.Impersonate:              "user to act as",
		&names.AuthOverrideFlags.ImpersonateUID:           "UID to act as",
		&names.AuthOverrideFlags.ImpersonateGroups:        "group to act as; may be repeated",
		&names.ClusterOverrideFlags.APIServer:             "address of the API server",
		&names.ClusterOverrideFlags.CertificateAuthority:  "file with the authority that signed the API server's certificate",
		&names.ClusterOverrideFlags.InsecureSkipTLSVerify: "do not check the API server's certificate",
		&names.ClusterOverrideFlags.TLSServerName:         "name that the API server's certificate is checked for",
		&names.ClusterOverrideFlags.ProxyURL:              "URL of a proxy",
		&names.ClusterOverrideFlags.DisableCompression:    "ask for responses without compression",
	} {
		flag.Description = usage
	}
	clientcmd.BindOverrideFlags(&f.overrides, flags, names)
	for _, name := range connection(names) {
		// The error is about a flag that does not exist.
		_ = flags.SetAnnotation(name, Connection, []string{"true"})
	}
	// The error is about a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("context", f.completeContext)
}

// none is a flag that is not offered.
var none clientcmd.FlagInfo

func (f *Flags) config() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &f.overrides)
}

// Namespace is the one that is named, else that of the kubeconfig's context, else default.
func (f *Flags) Namespace(named string) (string, error) {
	if named != "" {
		return named, nil
	}
	namespace, _, err := f.config().Namespace()
	return namespace, err
}

func (f *Flags) completeContext(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	raw, err := f.config().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return Beginning(slices.Sorted(maps.Keys(raw.Contexts)), prefix, nil), cobra.ShellCompDirectiveNoFileComp
}

// Connect makes a client; warnings of the API server go to the writer, those of the same words once.
func (f *Flags) Connect(warnings io.Writer) (client.WithWatch, error) {
	return f.ConnectWith(rest.NewWarningWriter(warnings, rest.WarningWriterOptions{Deduplicate: true}))
}

// Scheme knows the kinds of Kubernetes and of metalaw.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	all := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, v1alpha1.AddToScheme, policyv1alpha1.AddToScheme)
	return scheme, all.AddToScheme(scheme)
}

// RESTConfig is how to reach the API server.
func (f *Flags) RESTConfig() (*rest.Config, error) {
	config, err := f.config().ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("which cluster? There is no kubeconfig: name one with --kubeconfig or $KUBECONFIG")
	}
	if err != nil {
		return nil, fmt.Errorf("no access to an API server: %w; name a kubeconfig with --kubeconfig or $KUBECONFIG", err)
	}
	// What is sent at once is bounded where it is sent, and the API server has a limit of its own.
	config.QPS = -1
	config.UserAgent = FieldManager
	return config, nil
}

// Raw gets a path of the API server that is no object, such as /metrics.
func (f *Flags) Raw(ctx context.Context, path string) ([]byte, error) {
	config, err := f.RESTConfig()
	if err != nil {
		return nil, err
	}
	config.GroupVersion = &schema.GroupVersion{}
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	raw, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return raw.Get().RequestURI(path).DoRaw(ctx)
}

// ConnectWith makes a client; every warning of the API server goes to the handler.
func (f *Flags) ConnectWith(warnings rest.WarningHandler) (client.WithWatch, error) {
	config, err := f.RESTConfig()
	if err != nil {
		return nil, err
	}
	// The commands tell by themselves what there is to tell.
	log.SetLogger(logr.Discard())
	config.WarningHandlerWithContext = nil
	config.WarningHandler = warnings
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, Explain(err, "get", "")
	}
	return c, nil
}

// Run is the RunE of a command that works on a cluster.
func (f *Flags) Run(
	do func(ctx context.Context, t *terminal.Terminal, c client.WithWatch, args []string) error,
) func(*cobra.Command, []string) error {
	return terminal.Run(func(ctx context.Context, t *terminal.Terminal, args []string) error {
		c, err := f.Connect(t.Err)
		if err != nil {
			return err
		}
		return do(ctx, t, c, args)
	})
}

// completionLimit is how long a shell waits for names.
const completionLimit = 3 * time.Second

// Complete offers a shell the names in the cluster that begin with what is typed. At most some of them are arguments; 0 is any number.
func (f *Flags) Complete(most int, names func(ctx context.Context, c client.Client) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(given) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionLimit)
		defer cancel()
		c, err := f.Connect(cmd.ErrOrStderr())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		all, err := names(ctx, c)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return Beginning(all, prefix, given), cobra.ShellCompDirectiveNoFileComp
	}
}

// Beginning are the completions with a prefix that are not given already.
func Beginning(all []string, prefix string, given []string) []string {
	return slices.DeleteFunc(all, func(completion string) bool {
		name, _, _ := strings.Cut(completion, "\t")
		return !strings.HasPrefix(name, prefix) || slices.Contains(given, name)
	})
}

// WhoAmI is the user as the API server knows them; where it does not say, the user of the kubeconfig.
func (f *Flags) WhoAmI(ctx context.Context, c client.Client) string {
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(ctx, review); err == nil && review.Status.UserInfo.Username != "" {
		return review.Status.UserInfo.Username
	}
	raw, err := f.config().RawConfig()
	if err != nil {
		return ""
	}
	name := raw.CurrentContext
	if f.overrides.CurrentContext != "" {
		name = f.overrides.CurrentContext
	}
	if in := raw.Contexts[name]; in != nil {
		return in.AuthInfo
	}
	return ""
}
