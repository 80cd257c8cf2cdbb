// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package holders

import "errors"

// Kernel changes nothing: the agent runs on Linux, elsewhere it is only built and tested.
type Kernel struct{}

// Write implements Changer.
func (Kernel) Write(string, string) error { return errors.ErrUnsupported }

// RemoveMapping implements Changer.
func (Kernel) RemoveMapping(string) error { return errors.ErrUnsupported }
