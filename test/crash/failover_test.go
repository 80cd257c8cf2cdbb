// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/metalaw/metalaw/test/env"
)

// prepareTwo makes two managers of which one leads. Webhooks and registry are reached at either, as by a Service.
func (w *world) prepareTwo(ctx context.Context) {
	GinkgoHelper()
	first, second, public := freeAddresses(ctx), freeAddresses(ctx), freeAddresses(ctx)
	w.killer = newKiller(func() bool {
		leader := w.leader.Load()
		return leader != nil && leader.Kill()
	})
	w.manager = w.newManager(ctx, "manager-a", first, public, "--leader-elect")
	w.standby = w.newManager(ctx, "manager-b", second, public, "--leader-elect")
	for _, m := range []*env.Operator{w.manager, w.standby} {
		m.Await = func(ctx context.Context) { w.awaitOther(ctx, m) }
	}
	w.balance(ctx, public.registry, first.registry, second.registry)
	w.balance(ctx, public.webhook, first.webhook, second.webhook)
	w.mountCertificates(ctx, public.webhook)
}

// awaitOther waits until another manager leads than the one given, so that a leader that died comes back as the standby.
func (w *world) awaitOther(ctx context.Context, m *env.Operator) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for w.leader.Load() == m {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// balance passes connections to a port on to the first of others that takes them.
func (w *world) balance(ctx context.Context, from int, to ...int) {
	GinkgoHelper()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", local(from))
	Expect(err).NotTo(HaveOccurred())
	context.AfterFunc(w.life, func() { _ = listener.Close() })
	w.helpers.Go(func() {
		for {
			inward, err := listener.Accept()
			if err != nil {
				return
			}
			w.helpers.Go(func() { w.forward(inward, to) })
		}
	})
}

func (w *world) forward(inward net.Conn, to []int) {
	defer func() { _ = inward.Close() }()
	var outward net.Conn
	for _, port := range to {
		var err error
		if outward, err = new(net.Dialer).DialContext(w.life, "tcp", local(port)); err == nil {
			break
		}
	}
	if outward == nil {
		return
	}
	stop := context.AfterFunc(w.life, func() { _ = inward.Close(); _ = outward.Close() })
	defer stop()
	w.helpers.Go(func() {
		_, _ = io.Copy(outward, inward)
		_ = outward.Close()
	})
	_, _ = io.Copy(inward, outward)
	_ = outward.Close()
}

// milestones are the writes at which a leader dies, each once: in the middle of an inspection, of a wipe, of a binding, and
// of a shutdown. A lease has to lapse each time, so that few kills are content with the first two.
var milestones = []point{
	{`ComputerSystem.Reset {"ResetType":"On"}`, afterwards},
	{"status.state=Cleanup", afterwards},
	{"serverclaims/status status.phase=Bound", beforehand},
	{`ComputerSystem.Reset {"ResetType":"GracefulShutdown"}`, afterwards},
}

var _ = Describe("Two managers of which one leads", func() {
	It("hand the work on wherever the leader dies, and do nothing twice", func(ctx SpecContext) {
		w := newWorldFor(ctx, env.Options{}, (*world).prepareTwo)
		milestones := milestones
		if number(killsVariable, fewKills) < thorough {
			milestones = milestones[:2]
		}
		died := map[point]bool{}
		w.killer.arm(len(milestones), func(p point) bool {
			i := slices.IndexFunc(milestones, func(m point) bool { return m.when == p.when && strings.HasSuffix(p.kind, m.kind) })
			if i < 0 || died[milestones[i]] {
				return false
			}
			died[milestones[i]] = true
			return true
		})
		Expect(w.manager.Start()).To(Succeed())
		Expect(w.standby.Start()).To(Succeed())
		w.tell(ctx)
		Expect(w.killer.kills()).To(Equal(len(milestones)), w.killer.table())
		for _, m := range []*env.Operator{w.manager, w.standby} {
			_, led := w.led.Load(m)
			Expect(led).To(BeTrue(), "%s led at some time", m.Name)
		}
		w.judge(ctx)
	}, SpecTimeout(10*time.Minute))
})
