// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// server is a Server as the driver sees it.
func server(name, state, power, claim string) object {
	var o object
	o.Metadata.Name, o.Spec.SystemUUID = name, "UUID-"+name
	o.Status.State, o.Status.PowerState = state, power
	if claim != "" {
		o.Spec.ServerClaimRef = &reference{"load", claim}
	}
	return o
}

// aClaim is a ServerClaim as the driver sees it.
func aClaim(name, phase, server string) object {
	var o object
	o.Metadata.Name, o.Metadata.Namespace, o.Status.Phase = name, "load", phase
	if server != "" {
		o.Spec.ServerRef = &reference{Name: server}
	}
	return o
}

func seen(objects ...object) map[string]object {
	all := map[string]object{}
	for _, o := range objects {
		all[o.key()] = o
	}
	return all
}

func TestAGoalIsReached(t *testing.T) {
	for name, c := range map[string]struct {
		goal            goal
		servers, claims map[string]object
		want            string
		missing         string
		reached         bool
	}{
		"when all servers are Available and off": {
			allAvailable(2, ""), seen(server("a", "Available", "Off", ""), server("b", "Available", "Off", "")), nil,
			"2 of 2 servers Available and off", "", true},
		"not while one is on": {
			allAvailable(2, ""), seen(server("a", "Available", "On", ""), server("b", "Available", "Off", "")), nil,
			"1 of 2 servers Available and off", "a", false},
		"not while one has not appeared": {
			allAvailable(2, ""), seen(server("a", "Available", "Off", "")), nil, "1 of 2 servers Available and off", "", false},
		"not while a released claim is still there": {
			allAvailable(1, kindClaim), seen(server("a", "Available", "Off", "")), seen(aClaim("c", "Bound", "a")),
			"1 of 1 servers Available and off; 1 claims are still there", "", false},
		"when all claims are Bound and name a server": {
			allBound(1), nil, seen(aClaim("c", "Bound", "a")), "1 of 1 claims Bound", "", true},
		"not while a claim is Bound to nothing": {
			allBound(1), nil, seen(aClaim("c", "Bound", "")), "0 of 1 claims Bound", "load/c", false},
		"when the claims' servers run, whatever the others do": {
			allRunning(1), seen(server("a", "Reserved", "On", "c"), server("b", "Available", "Off", "")), nil,
			"1 of 1 servers Reserved and on", "", true},
		"not while a claim's server is off": {
			allRunning(1), seen(server("a", "Reserved", "Off", "c"), server("b", "Available", "Off", "")), nil,
			"0 of 1 servers Reserved and on", "a", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.goal.stand(c.servers, c.claims)
			var missing []string
			for i := range s.missing {
				missing = append(missing, s.missing[i].key())
			}
			if got := s.String(); got != c.want || s.reached() != c.reached || strings.Join(missing, " ") != c.missing {
				t.Errorf("got %q, reached %t, missing %q; want %q, %t, %q", got, s.reached(), missing, c.want, c.reached, c.missing)
			}
		})
	}
}

func TestTheMachinesHaveTheLastWord(t *testing.T) {
	goal := allAvailable(3, "")
	s := goal.stand(seen(server("a", "Available", "Off", ""), server("b", "Available", "Off", ""), server("c", "Available", "Off", "")), nil)
	s.compare(off, map[string]string{"uuid-a": "Off", "uuid-b": "PoweringOff"})
	want := []string{"no machine has the UUID uuid-c", "the machine with UUID uuid-b is PoweringOff"}
	if s.reached() || !slices.Equal(s.stray, want) {
		t.Errorf("reached %t, stray %q; want %q", s.reached(), s.stray, want)
	}
	s.compare(off, map[string]string{"uuid-a": "Off", "uuid-b": "Off", "uuid-c": "Off"})
	if !s.reached() {
		t.Errorf("not reached: %s", s.String())
	}
}

func TestAnObjectIsDescribedByItsOwnWords(t *testing.T) {
	o := server("a", "Discovery", "On", "c")
	o.Status.Conditions = []condition{{"Ready", "False", "Moving", "Waiting for its report."}}
	const want = "a: state Discovery, power On, claim load/c, Ready=False (Moving: Waiting for its report.)"
	if got := describe(&o); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	var empty object
	empty.Metadata.Name = "e"
	if got := describe(&empty); got != "e: no conditions" {
		t.Errorf("got %q", got)
	}
}

func TestAFleetFollowsChangesAndLists(t *testing.T) {
	f := newFleet()
	f.replace(kindServer, []object{server("a", "Initial", "", ""), server("b", "Initial", "", "")})
	changed := f.next()
	f.apply(kindServer, false, server("a", "Available", "Off", ""))
	select {
	case <-changed:
	default:
		t.Error("a change was not told")
	}
	f.replace(kindServer, []object{server("b", "Available", "Off", "x"), server("c", "Initial", "", "x")})
	f.apply(kindServer, true, server("c", "", "", ""))
	f.read(func(servers, _ map[string]object) {
		if len(servers) != 1 || servers["b"].Status.State != "Available" {
			t.Errorf("got %v", servers)
		}
	})
	if got := f.doubleBinds(); got != 1 {
		t.Errorf("%d double bindings, want 1", got)
	}
}

func TestForEachDoesAllUnlessOneFails(t *testing.T) {
	var done atomic.Int32
	if err := forEach(100, func(int) error { done.Add(1); return nil }); err != nil || done.Load() != 100 {
		t.Errorf("%d done, %v", done.Load(), err)
	}
	broken := errors.New("broken")
	if err := forEach(100, func(int) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestOptionsSayWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no servers":                {[]string{"--servers=0"}, "--servers 0: from 1 to 20000"},
		"more claims than servers":  {[]string{"--servers=3", "--claims=4"}, "there are only 3 servers"},
		"rights that are unknown":   {[]string{"--manager-rights=some"}, "write shipped or admin"},
		"no manager":                {[]string{"--manager-cmd="}, "--manager-cmd is empty"},
		"a delay below zero":        {[]string{"--latency=-1s"}, "--latency -1s: not below 0"},
		"no time at all":            {[]string{"--timeout=0s"}, "must be above 0"},
		"something that is no flag": {[]string{"20"}, "unknown command"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := newCommand()
			cmd.SetArgs(c.args)
			if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestHalfOfTheServersAreClaimedUnlessSaid(t *testing.T) {
	for claims, want := range map[int]int{-1: 10, 0: 0, 7: 7} {
		o := options{servers: 20, claims: claims, managerCommand: "m", managerRights: string(rightsAdmin), timeout: 1}
		if err := o.complete(); err != nil || o.claims != want {
			t.Errorf("%d: got %d, %v; want %d", claims, o.claims, err, want)
		}
	}
}
