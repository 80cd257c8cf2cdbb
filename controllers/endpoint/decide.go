// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"fmt"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/macprefixes"
)

// EffectEnsureBMC makes a device known as a BMC: its BMCSecret and its BMC exist. It holds as soon as the BMC does, and
// never changes either of them.
const EffectEnsureBMC = "EnsureBMC"

// facts is everything that a decision about an endpoint depends on.
type facts struct {
	name string
	// mac is normalised; macErr says why it cannot be.
	mac    string
	macErr error
	// row speaks for the device; found says that there is one.
	row   macprefixes.Row
	found bool
	// revision names the bundle that the row comes from.
	revision engine.Revision
	// bmc is the name of the BMC that is reached by this endpoint; empty where there is none.
	bmc string
	// holder says whose the BMC of the endpoint's name is, where it is not this endpoint's.
	holder string
}

// verdict is what was decided, in the words of the conditions.
type verdict struct {
	matched                   bool
	matchReason, matchMessage string
	reason, message           string
	ensure                    bool
}

// decide is pure.
func decide(f facts) verdict {
	if f.macErr != nil {
		return unmatched(v1alpha1.ReasonInvalidMAC, fmt.Sprintf("spec.macAddress cannot be used: %v; correct it", f.macErr))
	}
	if !f.found {
		return unmatched(v1alpha1.ReasonUnknownPrefix, fmt.Sprintf(
			"no row of macprefixes.yaml in bundle %s matches %s. The rows come with the policy bundle, and cannot be added to yet; "+
				"if the device is a BMC, create its BMCSecret and its BMC by hand", bundleName(f.revision), f.mac))
	}
	v := verdict{
		matched: true, matchReason: v1alpha1.ReasonPrefixFound,
		matchMessage: fmt.Sprintf("%s matches the row %s (%s) of bundle %s", f.mac, f.row.Prefix, f.row.Manufacturer, bundleName(f.revision)),
	}
	switch {
	case f.bmc != "":
		v.ensure = f.bmc == f.name
		v.reason, v.message = v1alpha1.ReasonBMCCreated, fmt.Sprintf("the device is managed by BMC %s", f.bmc)
	case !f.row.IsBMC():
		v.reason = v1alpha1.ReasonNotABMC
		v.message = fmt.Sprintf("the row %s says that the device is of type %q; nothing is made of it", f.row.Prefix, f.row.Type)
	case f.holder != "":
		v.reason = v1alpha1.ReasonNameTaken
		v.message = fmt.Sprintf("a BMC named %s exists and is reached by %s; delete it, or give this endpoint another name", f.name, f.holder)
	default:
		v.ensure = true
		v.reason, v.message = v1alpha1.ReasonBMCCreated, fmt.Sprintf("the device is managed by BMC %s", f.name)
	}
	return v
}

func unmatched(reason, message string) verdict {
	return verdict{matchReason: reason, matchMessage: message, reason: reason, message: message}
}

func bundleName(r engine.Revision) string {
	if r.Version == "" {
		return r.Name
	}
	return r.Name + " " + r.Version
}

// Decide implements loop.Scope.
func (v *scope) Decide() verdict { return decide(v.facts) }
