// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/internal/mergepatch"
	"github.com/metalaw/metalaw/redfish"
)

// QualificationLabel marks ConfigMaps that hold what a model can do.
const QualificationLabel = "policy.metalaw.dev/qualification"

// namespace is where config/default installs the manager.
const namespace = "metalaw-system"

// qualification is one run of the command.
type qualification struct {
	client.Client
	terminal *terminal.Terminal
	name     string
	limits   limits
	media    string
	file     string
	output   terminal.Output
	// held is how long the manager may take to leave the Servers alone.
	held time.Duration
}

func qualifyCommand(flags *access.Flags) *cobra.Command {
	var how trust
	q := &qualification{held: time.Minute}
	var yes bool
	cmd := &cobra.Command{
		Use:   "qualify NAME --yes",
		Short: "Exercise a spare machine, and write down what its BMC can do",
		Long: "Switches the machine on with a boot override, watches the firmware use it, clears it, switches the machine off, inserts " +
			"and ejects virtual media, restarts the BMC, and opens sessions. The manager leaves the BMC and its Servers alone " +
			"meanwhile (annotation metal.ironcore.dev/operation).\n\n" +
			"It is refused unless each Server of the BMC is Available, unclaimed, cordoned, Off and not Dirty. The result goes into a ConfigMap " +
			"for the model and firmware, and into a file that names no machine: send it to us.\n\n" +
			"Exit codes: 0 every step passed or was skipped. 1 a step failed, or the command was refused. 2 the command line makes no sense.",
		Example: "  {{.}} server cordon rack1-07-system-0 --reason 'to qualify its model'\n  {{.}} bmc qualify rack1-07 --yes",
		Args: func(cmd *cobra.Command, args []string) error {
			if err := usage.OneArg("name one BMC")(cmd, args); err != nil {
				return err
			}
			if !yes {
				return usage.Errorf("the machine is switched on and off, and its BMC restarts: say --yes")
			}
			return nil
		},
		RunE: flags.Run(func(ctx context.Context, t *terminal.Terminal, c client.WithWatch, args []string) error {
			q.Client, q.terminal, q.name = c, t, args[0]
			b, target, err := how.target(ctx, c, q.name)
			if err != nil {
				return err
			}
			return q.run(ctx, b, target)
		}),
	}
	how.register(cmd)
	f := cmd.Flags()
	f.BoolVarP(&yes, "yes", "y", false, "the machine is spare, and may be switched on and off")
	f.DurationVar(&q.limits.POST, "post-timeout", 20*time.Minute, "how long the firmware may take until it has used a boot override")
	f.DurationVar(&q.limits.Power, "power-timeout", 2*time.Minute, "how long a power change may take")
	f.DurationVar(&q.limits.Restart, "restart-timeout", 15*time.Minute, "how long the BMC may be away when it restarts")
	f.DurationVar(&q.limits.Poll, "poll", 3*time.Second, "time between two reads")
	f.StringVar(&q.media, "media-url", "", "http or https URL of a small ISO that the BMC can open; empty skips virtual media")
	terminal.WritesFile(cmd, &q.file, "qualification.yaml", "report to write; one that exists is replaced")
	q.output.Register(cmd)
	return cmd
}

func (q *qualification) run(ctx context.Context, b *metalv1alpha1.BMC, target hardware.Target) (err error) {
	servers, err := q.spare(ctx)
	if err != nil {
		return err
	}
	if operation := b.Annotations[metalv1alpha1.OperationAnnotation]; operation != "" {
		return fmt.Errorf("BMC %s has the operation %q already; let it end, or remove the annotation", q.name, operation)
	}
	if err := q.hold(ctx, b, metalv1alpha1.OperationIgnoreChild); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.release(context.WithoutCancel(ctx))) }()
	if err := q.leftAlone(ctx); err != nil {
		return err
	}
	pool := redfish.NewPool(redfish.PoolOptions{})
	defer func() { _ = pool.Close(context.WithoutCancel(ctx)) }() // the BMC ends the session by itself
	e, err := q.exercise(ctx, pool, target, servers)
	if err != nil {
		return err
	}
	e.run(ctx)
	return errors.Join(q.write(ctx, e.report), passedAll(e.report))
}

func passedAll(r *Report) error {
	if r.passed() {
		return nil
	}
	return terminal.ErrIncomplete
}

// spare reads the Servers of the BMC and refuses where one is not spare.
func (q *qualification) spare(ctx context.Context) ([]metalv1alpha1.Server, error) {
	var all metalv1alpha1.ServerList
	if err := q.List(ctx, &all); err != nil {
		return nil, access.Explain(err, "list", access.Servers)
	}
	servers := slices.DeleteFunc(all.Items, func(s metalv1alpha1.Server) bool { return s.Spec.BMCRef == nil || s.Spec.BMCRef.Name != q.name })
	if why := refusals(servers); len(why) > 0 {
		return nil, fmt.Errorf("BMC %s is not qualified: %s", q.name, strings.Join(why, "; "))
	}
	return servers, nil
}

// hold makes the manager leave the BMC and its Servers alone.
func (q *qualification) hold(ctx context.Context, b *metalv1alpha1.BMC, operation string) error {
	before := b.DeepCopy()
	metav1.SetMetaDataAnnotation(&b.ObjectMeta, metalv1alpha1.OperationAnnotation, operation)
	return q.Patch(ctx, b, mergepatch.Locked(before))
}

// release lets the manager go on.
func (q *qualification) release(ctx context.Context) error {
	var b metalv1alpha1.BMC
	if err := q.Get(ctx, client.ObjectKey{Name: q.name}, &b); err != nil {
		return fmt.Errorf("the manager still leaves BMC %s alone: %w; remove annotation %s by hand", q.name, err, metalv1alpha1.OperationAnnotation)
	}
	before := b.DeepCopy()
	delete(b.Annotations, metalv1alpha1.OperationAnnotation)
	if err := q.Patch(ctx, &b, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("the manager still leaves BMC %s alone: %w; remove annotation %s by hand", q.name, err, metalv1alpha1.OperationAnnotation)
	}
	return nil
}

// leftAlone waits until the manager has marked each Server, and then looks once more whether all are spare: from now on the manager
// asks nothing of the machine.
func (q *qualification) leftAlone(ctx context.Context) error {
	for began := time.Now(); ; {
		servers, err := q.spare(ctx)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(servers, func(s metalv1alpha1.Server) bool { return !metalv1alpha1.Ignored(&s) }) {
			return nil
		}
		if time.Since(began) > q.held {
			return fmt.Errorf("the manager has not marked the Servers of BMC %s within %s; see that it runs: metalaw doctor", q.name, q.held)
		}
		if err := wait(ctx, time.Second); err != nil {
			return err
		}
	}
}

// exercise reads the BMC and finds the system of the first Server by its UUID.
func (q *qualification) exercise(ctx context.Context, pool *redfish.Pool, target hardware.Target, servers []metalv1alpha1.Server) (*exercise, error) {
	b := pool.Get("qualify", target.Endpoint, target.Credentials)
	manager, err := b.Manager(ctx)
	if err != nil {
		return nil, err
	}
	for _, uri := range manager.SystemURIs {
		s, err := b.System(ctx, uri)
		if err != nil {
			return nil, err
		}
		if s.Identity.UUID == "" || !strings.EqualFold(s.Identity.UUID, servers[0].Spec.SystemUUID) {
			continue
		}
		at := redfish.SystemAt{URI: uri, Identity: s.Identity}
		count := 0
		return &exercise{
			bmc: b, at: at, limits: q.limits, media: q.media, now: time.Now,
			open: func() redfish.BMC {
				count++
				return pool.Get(fmt.Sprintf("qualify-%d", count), target.Endpoint, target.Credentials)
			},
			know: redfish.ManagerIdentity{UUID: manager.UUID, SerialNumber: manager.SerialNumber, Systems: []redfish.SystemAt{at}},
			report: &Report{Manufacturer: s.Identity.Manufacturer, Model: s.Identity.Model, BMCModel: manager.Model,
				BMCFirmware: manager.FirmwareVersion, BIOSVersion: s.BIOSVersion, At: q.terminal.Now.UTC()},
			allowed: func(ctx context.Context) error {
				_, err := q.spare(ctx)
				return err
			},
			said: func(s Step) {
				q.terminal.Notef("%-40s %-8s %3d s  %s", s.Name, s.Result, s.Seconds, terminal.Plain(s.Detail))
			},
		}, nil
	}
	return nil, fmt.Errorf("no system of BMC %s has the UUID of Server %s (%s)", q.name, servers[0].Name, servers[0].Spec.SystemUUID)
}

// write stores the report in a ConfigMap for the model and firmware, and in a file.
func (q *qualification) write(ctx context.Context, r *Report) error {
	text, err := yaml.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.WriteFile(q.file, text, 0o644); err != nil { //nolint:gosec // it is to be sent, and names no machine
		return err
	}
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: r.objectName(), Namespace: namespace}}
	err = q.Get(ctx, client.ObjectKeyFromObject(stored), stored)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("%s is written, and the ConfigMap is not: %w", q.file, err)
	}
	stored.Labels = map[string]string{QualificationLabel: "true"}
	stored.Data = map[string]string{"report.yaml": string(text)}
	write := func() error { return q.Update(ctx, stored) }
	if err != nil {
		write = func() error { return q.Create(ctx, stored) }
	}
	if err := write(); err != nil {
		return fmt.Errorf("%s is written, and the ConfigMap is not: %w", q.file, err)
	}
	q.output.Show(q.terminal, r, func() {
		q.terminal.Printf("%s, and ConfigMap %s/%s\n", q.file, namespace, stored.Name)
	})
	return nil
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// objectName is the name of the ConfigMap.
func (r *Report) objectName() string {
	words := strings.Join([]string{"qualification", r.Manufacturer, cmp.Or(r.Model, r.BMCModel), r.BMCFirmware}, "-")
	name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(words), "-"), "-")
	return strings.Trim(name[:min(len(name), 200)], "-")
}
