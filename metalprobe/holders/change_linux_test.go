// SPDX-License-Identifier: Apache-2.0

package holders

import (
	"testing"
	"unsafe"
)

func TestTheRequestHasTheSizeThatItsNumberSays(t *testing.T) {
	if size := unsafe.Sizeof(dmRequest{}); size != dmDeviceRemove>>16&0x3fff {
		t.Errorf("the request has %d bytes", size)
	}
}
