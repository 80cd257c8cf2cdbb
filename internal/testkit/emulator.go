// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

// EmulatorBundle is the name of the bundle that knows emulated BMCs.
const EmulatorBundle = "emulated"

// emulatedRow is how emulated BMCs are reached. docs/emulator.md shows the same row.
const emulatedRow = `
  # The Redfish emulator. The prefix is locally administered: no vendor ships it, and such addresses match only rows that
  # spell them out. Every emulated BMC listens on port 8000 of an address of its own, without TLS.
  - macPrefix: "02:4d:4c"
    manufacturer: Emulated
    protocolScheme: http
    port: 8000
    defaultCredentials: [{username: admin, password: password}]
`

// KnowEmulator adds the row of emulated BMCs to the MAC database of a bundle. No shipped bundle has it.
func KnowEmulator(files bundle.Files) {
	files[bundle.MACPrefixesFile] = append(files[bundle.MACPrefixesFile], emulatedRow...)
}

// EmulatorConfigMap promotes the shipped default with the row of emulated BMCs. The leader fills in the files that it leaves out.
func EmulatorConfigMap(namespace string) (*corev1.ConfigMap, error) {
	files, err := policies.Shipped(policies.DefaultBundle)
	if err != nil {
		return nil, err
	}
	Rename(files, EmulatorBundle, "")
	KnowEmulator(files)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bundle-" + EmulatorBundle, Labels: map[string]string{
		policyv1alpha1.BundleLabel: EmulatorBundle, policyv1alpha1.StageLabel: policyv1alpha1.LabelActive}}, Data: map[string]string{}}
	for _, file := range []string{bundle.BundleFile, bundle.MACPrefixesFile} {
		cm.Data[file] = string(files[file])
	}
	return cm, nil
}
