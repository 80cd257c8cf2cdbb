// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"errors"
	"os"
)

// CreateDisk makes an empty raw image, which takes no room until it is written.
func CreateDisk(path string, size int64) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(file.Truncate(size), file.Close())
}
