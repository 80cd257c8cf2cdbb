// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"strings"
	"testing"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

func FuzzNamePCI(f *testing.F) {
	f.Add("10de  NVIDIA\n\t2330  H100\n", "10de", "2330")
	f.Fuzz(func(t *testing.T, list, vendor, product string) {
		devices := []policyv1alpha1.PCIDevice{{VendorID: vendor, ProductID: product}}
		namePCI(devices, strings.NewReader(list))
		if devices[0].VendorID != vendor || len(devices[0].Product) > len(list) {
			t.Errorf("got %+v", devices[0])
		}
	})
}
