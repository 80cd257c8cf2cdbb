// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// await returns when the goal is reached. The time that a phase has runs from its beginning.
func (w *world) await(ctx context.Context, began time.Time, g goal) error {
	ctx, cancel := context.WithDeadline(ctx, began.Add(w.options.timeout))
	defer cancel()
	told := time.Now()
	for {
		changed := w.fleet.next()
		var s standing
		w.fleet.read(func(servers, claims map[string]object) { s = g.stand(servers, claims) })
		pause := tellEvery
		if s.reached() && g.power != "" {
			power, err := w.bmcs.powered(ctx)
			if err != nil && ctx.Err() == nil {
				return err
			}
			s.compare(g.power, power)
			pause = askMachines
		}
		if s.reached() {
			return nil
		}
		if time.Since(told) >= tellEvery {
			told = time.Now()
			w.progress.say("%s", s.String())
		}
		if err := w.wait(ctx, changed, pause); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				return w.stalled(context.WithoutCancel(ctx), s)
			}
			return err
		}
	}
}

// wait returns at the next change, but not so soon that looking would cost more than it tells.
func (w *world) wait(ctx context.Context, changed <-chan struct{}, longest time.Duration) error {
	timer := time.NewTimer(longest)
	defer timer.Stop()
	select {
	case <-changed:
		select {
		case <-time.After(look):
		case <-ctx.Done():
		}
	case <-timer.C:
	case err := <-w.trouble:
		return err
	case <-ctx.Done():
	}
	return ctx.Err()
}

// stalled says what is missing, down to what the objects say of themselves.
func (w *world) stalled(ctx context.Context, s standing) error {
	lines := []string{fmt.Sprintf("stalled: after %s, %s", w.options.timeout, s.String())}
	for i := range s.missing[:min(shown, len(s.missing))] {
		lines = append(lines, describe(&s.missing[i]))
	}
	if len(s.missing) > shown {
		lines = append(lines, fmt.Sprintf("and %d more", len(s.missing)-shown))
	}
	if absent := s.want - s.have - len(s.missing); absent > 0 {
		lines = append(lines, fmt.Sprintf("%d have not appeared at all", absent))
		lines = append(lines, w.origins(ctx)...)
	}
	return errors.New(strings.Join(lines, "\n  "))
}

// origins says how the first BMCs and Endpoints stand that are not Ready, for servers that never appeared.
func (w *world) origins(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	var lines []string
	for _, k := range []kind{kindBMC, kindEndpoint} {
		objects, _, err := w.api.objects(ctx, k)
		if err != nil {
			return append(lines, err.Error())
		}
		lines = append(lines, fmt.Sprintf("there are %d %s", len(objects), k))
		named := 0
		for i := range objects {
			if !ready(&objects[i]) && named < shown {
				named++
				lines = append(lines, strings.TrimSuffix(string(k), "s")+" "+describe(&objects[i]))
			}
		}
	}
	return lines
}

func ready(o *object) bool {
	for _, c := range o.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True"
		}
	}
	return false
}
