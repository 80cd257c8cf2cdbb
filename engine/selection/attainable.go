// SPDX-License-Identifier: Apache-2.0

package selection

// alwaysLasts says that every rule with a code reads only what lasts: what the claim asks for, and what the server is. CodeNotAllowed is
// that of allow. Where the rules are interpreted it is not known what reads what, and either all or none of them count as such.
func (p *Policy) alwaysLasts(code string) bool {
	if p.native == nil {
		return !p.passing
	}
	if code == CodeNotAllowed && !p.native.lastingAllow {
		return false
	}
	for i, r := range p.native.rejects {
		if r.Code == code && !p.native.lasting[i] {
			return false
		}
	}
	return true
}
