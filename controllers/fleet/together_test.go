// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// numbered is a store whose reads say which one they were, and end when they are let.
type numbered struct {
	client.Reader
	begun int
	end   chan error
}

func (n *numbered) Get(ctx context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	n.begun++
	o.SetResourceVersion(fmt.Sprint(n.begun))
	select {
	case err := <-n.end:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// answers collects which read each of those who asked was given.
type answers chan string

func (a answers) ask(ctx context.Context, t *together, from client.Reader) {
	c, err := t.control(ctx, from)
	if err != nil {
		a <- err.Error()
		return
	}
	a <- "read " + c.ResourceVersion
}

func (a answers) all() []string {
	var got []string
	for len(a) > 0 {
		got = append(got, <-a)
	}
	return got
}

func want(t *testing.T, a answers, want ...string) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, a.all()); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

func TestThoseWhoAskTogetherShareOneReadThatBeganAfterTheyAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared, store, got := &together{}, &numbered{end: make(chan error)}, make(answers, 10)
		go got.ask(t.Context(), shared, store)
		synctest.Wait()
		for range 3 { // the first read has begun: it may be older than what these want to know
			go got.ask(t.Context(), shared, store)
		}
		synctest.Wait()
		store.end <- nil
		want(t, got, "read 1")
		go got.ask(t.Context(), shared, store)
		synctest.Wait()
		store.end <- nil
		want(t, got, "read 2", "read 2", "read 2")
		store.end <- nil
		want(t, got, "read 3")
	})
}

func TestWhoGivesUpTakesTheReadFromNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared, store, got := &together{}, &numbered{end: make(chan error)}, make(answers, 10)
		hasty, cancel := context.WithCancel(t.Context())
		go got.ask(t.Context(), shared, store)
		synctest.Wait()
		go got.ask(hasty, shared, store)
		synctest.Wait()
		go got.ask(t.Context(), shared, store)
		synctest.Wait()
		cancel()
		want(t, got, "context canceled")
		store.end <- nil
		want(t, got, "read 1")
		store.end <- nil
		want(t, got, "read 2")
	})
}

func TestAFailedReadIsThatOfThoseWhoSharedItAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared, store, got := &together{}, &numbered{end: make(chan error)}, make(answers, 10)
		go got.ask(t.Context(), shared, store)
		synctest.Wait()
		go got.ask(t.Context(), shared, store)
		synctest.Wait()
		store.end <- errors.New("the API server is gone")
		want(t, got, "the API server is gone")
		store.end <- nil
		want(t, got, "read 2")
	})
}

func TestAReadThatNobodyAnswersEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared, store, got := &together{}, &numbered{end: make(chan error)}, make(answers, 10)
		got.ask(t.Context(), shared, store) // the clock goes on where nothing else can
		want(t, got, "context deadline exceeded")
	})
}

func TestWhatWasReadTogetherIsEachOnesOwn(t *testing.T) {
	shared := &together{}
	control := &policyv1alpha1.FleetControl{}
	control.Labels = map[string]string{"of": "the store"}
	first, err := shared.control(t.Context(), stored{control: control})
	if err != nil {
		t.Fatal(err)
	}
	shared.last.control.Labels["of"] = "another"
	if diff := cmp.Diff("the store", first.Labels["of"]); diff != "" {
		t.Errorf("label (-want +got):\n%s", diff)
	}
}
