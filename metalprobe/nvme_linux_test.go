// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"testing"
	"unsafe"
)

// The request's number holds the size of its argument (bits 16 to 29): another size is another request.
func TestTheNVMeCommandHasTheSizeThatItsRequestSays(t *testing.T) {
	if got, want := unsafe.Sizeof(nvmeCommand{}), uintptr(nvmeIoctlAdmin>>16&0x3fff); got != want {
		t.Errorf("%d bytes, the kernel expects %d", got, want)
	}
	if got := unsafe.Offsetof(nvmeCommand{}.address); got != 24 {
		t.Errorf("the address of the data is at byte %d", got)
	}
}
