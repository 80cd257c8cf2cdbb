// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"net/http"
	"slices"
	"strings"
)

// resetPlan is what an action presumes and leads to.
type resetPlan struct {
	done    []PowerState // states in which nothing has to be written
	restart bool         // needs a system that is not Off
	hint    string       // for a BMC that does not offer it
}

var resetPlans = map[PowerAction]resetPlan{
	ActionOn:               {done: []PowerState{PowerOn, PowerPoweringOn}},
	ActionGracefulShutdown: {done: []PowerState{PowerOff, PowerPoweringOff}, hint: "ForceOff would cut the power instead"},
	ActionForceOff:         {done: []PowerState{PowerOff}},
	ActionGracefulRestart:  {restart: true, hint: "ForceRestart would restart without asking the operating system"},
	ActionForceRestart:     {restart: true, hint: "ForceOff and then On come to the same"},
	ActionPowerCycle:       {restart: true, hint: "ForceOff and then On come to the same"},
}

// Reset implements Power.
func (c *client) Reset(ctx context.Context, uri string, want Identity, action PowerAction) error {
	plan, known := resetPlans[action]
	if !known {
		return &UnsupportedError{URI: uri, Wanted: "the action " + string(action)}
	}
	op, cancel, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	doc, snapshot, err := op.checked(uri, want)
	if err != nil || slices.Contains(plan.done, snapshot.Power) {
		return err
	}
	if plan.restart && snapshot.Power == PowerOff {
		return ErrOff
	}
	return op.reset(uri, want, doc, action, string(doc.ETag))
}

// reset asks for an action of a system that was just checked.
func (o *operation) reset(uri string, want Identity, doc *systemDoc, action PowerAction, etag string) error {
	plan, reset := resetPlans[action], doc.Actions.Value.Reset.Value
	word, err := o.resetWord(uri, action, reset, plan.hint)
	if err != nil {
		return err
	}
	err = o.post(string(reset.Target), etag, map[string]string{"ResetType": word})
	if statusIs(err, http.StatusConflict, http.StatusBadRequest) {
		// BMCs refuse what already is, and their power state lags behind by seconds: look once more.
		if _, now, readErr := o.checked(uri, want); readErr == nil && slices.Contains(plan.done, now.Power) {
			return nil
		}
	}
	return err
}

// resetWord picks the word that this BMC has for an action.
func (o *operation) resetWord(uri string, action PowerAction, reset resetAction, hint string) (string, error) {
	if reset.Target == "" {
		return "", &UnsupportedError{URI: uri, Wanted: "any reset", Hint: "it has no Reset action; a BMC that starts may not show it yet"}
	}
	offered, err := o.resetTypes(reset)
	if err != nil {
		return "", err
	}
	if len(offered) == 0 { // not said: the BMC will answer for itself
		return string(action), nil
	}
	for _, word := range []string{string(action), resetWords[action]} {
		if at := slices.IndexFunc(offered, func(offer string) bool { return word != "" && strings.EqualFold(word, offer) }); at >= 0 {
			return offered[at], nil
		}
	}
	return "", &UnsupportedError{URI: uri, Wanted: string(action), Offered: offered, Hint: hint}
}

// resetTypes lists what the action takes: inline, else by its ActionInfo, which is read once per BMC.
func (o *operation) resetTypes(reset resetAction) ([]string, error) {
	if inline := words(reset.Allowed); len(inline) > 0 {
		return inline, nil
	}
	uri := string(reset.ActionInfo)
	if uri == "" {
		return nil, nil
	}
	if known := o.c.knownResetTypes(uri); known != nil {
		return known, nil
	}
	var info struct {
		Parameters list[struct {
			Name            text
			AllowableValues list[text]
		}]
	}
	if _, err := o.get(uri, &info); statusIs(err, http.StatusNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	for _, parameter := range info.Parameters.Values {
		if parameter.Name != "ResetType" {
			continue
		}
		types := words(parameter.AllowableValues)
		if len(types) > 0 {
			o.c.learn(func(m *memory) { m.resetTypes[uri] = types })
		}
		return types, nil
	}
	return nil, nil
}

func (c *client) knownResetTypes(actionInfo string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.memory.resetTypes[actionInfo])
}
