// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/controllers/maintenance/hold"
)

// abortRequest is what the command line of abort asks for.
type abortRequest struct {
	scope
	reason, forceOff string
	wait             bool
	timeout          time.Duration
	// every is the pause between two looks of --wait.
	every time.Duration
}

// aborted is what became of it.
type aborted struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Server    string `json:"server"`
	// Outcome is asked, stopped, unchanged or timed-out.
	Outcome string `json:"outcome"`
	// StopsAt is the safe point at which it stops, or did.
	StopsAt string   `json:"stopsAt"`
	Message string   `json:"message,omitempty"`
	Notes   []string `json:"notes"`
}

func abortCommand(flags *access.Flags) *cobra.Command {
	r := &abortRequest{every: 2 * time.Second}
	var output terminal.Output
	cmd := &cobra.Command{
		Use:   "abort NAME [-n NAMESPACE] --reason TEXT [--force-off REASON] [--wait]",
		Short: "Stop a maintenance at the next safe point, and give its server back",
		Long: "Stores the reason on the ServerMaintenance, in annotation " + v1alpha1.AbortAnnotation + ". The manager stops it at the next safe " +
			"point, gives the server back, and keeps the object with state Failed and reason Aborted until its maker deletes it. " +
			"The command says which point that is.\n\n" +
			"A machine that boots an image of the maintenance is shut down by its operating system first, because a tool may be " +
			"flashing firmware. Where that does not end, --force-off allows the manager to cut the power.\n\n" +
			"Exit codes: 0 asked; with --wait, stopped. 1 it could not be stored, or did not stop in time. 2 the command line makes no sense.",
		Example: "  {{.}} maintenance abort bios-2.9-node-7 -n metalaw-system --reason 'wrong image, CHG-81' --wait\n\n" +
			"  # The image hangs, and no tool writes firmware\n" +
			"  {{.}} maintenance abort bios-2.9-node-7 -n metalaw-system --reason 'image hangs' --force-off 'no tool runs, seen on the console'",
		Args: func(cmd *cobra.Command, args []string) error {
			if err := usage.OneArg("name one maintenance")(cmd, args); err != nil {
				return err
			}
			return r.check(cmd.Flags().Changed("force-off"))
		},
		RunE: flags.Run(func(ctx context.Context, t *terminal.Terminal, c client.WithWatch, args []string) error {
			namespace, err := r.in(flags)
			if err != nil {
				return err
			}
			a, err := r.do(ctx, c, types.NamespacedName{Namespace: namespace, Name: args[0]})
			if err != nil {
				return err
			}
			output.Show(t, a, func() { a.text(t) })
			if a.Outcome == timedOut {
				return terminal.ErrIncomplete
			}
			return nil
		}),
		ValidArgsFunction: r.complete(flags),
	}
	r.register(cmd, false)
	f := cmd.Flags()
	f.StringVar(&r.reason, "reason", "", "why; required, and kept on the maintenance")
	f.StringVar(&r.forceOff, "force-off", "", "why it is safe to cut the power; the manager cuts it where the operating system does not shut down")
	f.BoolVar(&r.wait, "wait", false, "wait until it has stopped and its server is given back")
	f.DurationVar(&r.timeout, "timeout", 15*time.Minute, "how long --wait waits")
	output.Register(cmd)
	return cmd
}

func (r *abortRequest) check(forced bool) error {
	switch {
	case strings.TrimSpace(r.reason) == "":
		return usage.Errorf("--reason is required: the maker of the maintenance wants to know why it stopped")
	case utf8.RuneCountInString(r.reason) > maxReason || utf8.RuneCountInString(r.forceOff) > maxReason:
		return usage.Errorf("a reason has at most %d characters", maxReason)
	case forced && strings.TrimSpace(r.forceOff) == "":
		return usage.Errorf("--force-off takes the reason for which cutting the power is safe")
	case r.wait && r.timeout <= 0:
		return usage.Errorf("--timeout must be more than 0")
	}
	return nil
}

// Outcomes of an abort, beside unchanged.
const (
	asked    = "asked"
	stopped  = "stopped"
	timedOut = "timed-out"
)

func (r *abortRequest) do(ctx context.Context, c client.Client, key types.NamespacedName) (*aborted, error) {
	m, err := get(ctx, c, key)
	if err != nil {
		return nil, err
	}
	a := &aborted{Namespace: m.Namespace, Name: m.Name, Server: m.Spec.ServerRef.Name, Outcome: asked, Notes: []string{}}
	s, err := getServer(ctx, c, a.Server, &a.Notes)
	if err != nil {
		return nil, err
	}
	if hasStopped(m, s) {
		a.Outcome, a.StopsAt, a.Message = unchanged, "it holds no server", "it was aborted before"
		return a, nil
	}
	a.StopsAt = stopsAt(m, s, r.forceOff != "" || m.Annotations[v1alpha1.ForceOffReasonAnnotation] != "")
	changed := m.DeepCopy()
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, v1alpha1.AbortAnnotation, r.reason)
	if r.forceOff != "" {
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, v1alpha1.ForceOffReasonAnnotation, r.forceOff)
	}
	if err := c.Patch(ctx, changed, client.MergeFrom(m), client.FieldOwner(access.FieldManager)); err != nil {
		return nil, access.Explain(err, "patch", access.Maintenances)
	}
	if r.wait {
		return a, r.follow(ctx, c, changed, a)
	}
	return a, nil
}

// follow waits until the maintenance has stopped.
func (r *abortRequest) follow(ctx context.Context, c client.Client, m *v1alpha1.ServerMaintenance, a *aborted) error {
	limited, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	looks := time.NewTicker(r.every)
	defer looks.Stop()
	for {
		s := &v1alpha1.Server{}
		err := c.Get(limited, client.ObjectKeyFromObject(m), m)
		if apierrors.IsNotFound(err) {
			a.Outcome, a.Message = stopped, "the ServerMaintenance was deleted"
			return nil
		}
		if err == nil {
			if err = c.Get(limited, types.NamespacedName{Name: a.Server}, s); err != nil {
				s, err = nil, client.IgnoreNotFound(err)
			}
		}
		switch {
		case apierrors.IsForbidden(err):
			return access.Explain(err, "get", access.Servers)
		case err == nil && hasStopped(m, s):
			a.Outcome, a.Message = stopped, "its server is given back"
			return nil
		}
		select {
		case <-limited.Done():
			a.Outcome, a.Message = timedOut, "it is stored, and has not stopped in "+r.timeout.String()
			if tell := tells(m); tell != nil {
				a.Message += fmt.Sprintf("; %s is %s (%s): %s", tell.Type, tell.Status, tell.Reason, tell.Message)
			}
			return nil
		case <-looks.C:
		}
	}
}

// hasStopped says that a maintenance was aborted and its server is given back.
func hasStopped(m *v1alpha1.ServerMaintenance, s *v1alpha1.Server) bool {
	return hold.Aborted(m) && hold.Failed(m) && !hold.Named(s, m)
}

// stopsAt is the safe point at which a maintenance stops, as far as stored objects tell.
func stopsAt(m *v1alpha1.ServerMaintenance, s *v1alpha1.Server, mayForce bool) string {
	switch {
	case s == nil:
		return "where its machine is off, if it booted an image; else at once"
	case !hold.Named(s, m):
		return "at once: it holds no server"
	case !hold.Holds(s, m):
		return "never: the manager did not grant the server to it; another program or a user wrote spec.serverMaintenanceRef, and has to clear it"
	case m.Spec.ServerBootConfigurationTemplate == nil:
		return "at once: it boots no image, so the machine is left as it is"
	case s.Status.PowerState == v1alpha1.PowerStateOff:
		return "at once: the machine is off"
	case mayForce:
		return "when the machine is off: its operating system is asked to shut down, and the power is cut if it does not"
	default:
		return "when the machine is off: its operating system is asked to shut down, and the power is never cut; --force-off allows that"
	}
}

func (a *aborted) text(t *terminal.Terminal) {
	t.Printf("%s/%s  %s\n", terminal.Plain(a.Namespace), terminal.Plain(a.Name), a.Outcome)
	t.Field("Stops", a.StopsAt)
	t.Field("It says", a.Message)
	if a.Outcome == asked {
		t.Field("Then", fmt.Sprintf("state Failed, reason Aborted; kubectl delete servermaintenance -n %s %s removes it", a.Namespace, a.Name))
	}
	t.Notes(a.Notes)
}
