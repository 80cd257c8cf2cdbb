// SPDX-License-Identifier: Apache-2.0

package redfish

import "context"

// ResetManager implements ManagerReset.
func (c *client) ResetManager(ctx context.Context, graceful bool) error {
	op, cancel, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	doc, uri, err := op.manager()
	if err != nil {
		return err
	}
	action, hint := ActionForceRestart, "a graceful restart may be offered"
	if graceful {
		action, hint = ActionGracefulRestart, "a forced restart may be offered"
	}
	reset := doc.Actions.Value.Reset.Value
	word, err := op.resetWord(uri, action, reset, hint)
	if err != nil {
		return err
	}
	if err := op.post(string(reset.Target), string(doc.ETag), map[string]string{"ResetType": word}); err != nil {
		return err
	}
	// Sessions end with the BMC's process, and what it lists may differ afterwards.
	c.login.dropSession(op)
	c.forgetTopology()
	return nil
}
