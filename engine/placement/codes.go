// SPDX-License-Identifier: Apache-2.0

package placement

import "github.com/metalaw/metalaw/engine/selection"

// The codes with which a placement turns a server away, which Codes documents.
const (
	CodePlacement = "placement"
	CodeError     = "placement-error"
	CodeSpread    = "spread"
	CodeGang      = "gang"
)

// Codes documents every code, in the order in which they are checked.
func Codes() []selection.Code {
	return []selection.Code{
		{
			Code: CodePlacement, Meaning: "The claim's placement does not accept the server: `where` is false, or no alternative matches.",
			Remedy: "Compare `where` and `alternatives` with what the server has; the placement of a claim without `serverRef` can be changed. " +
				"A condition on `health` or `timesClaimed` may come true by itself.",
		},
		{
			Code: CodeError, Meaning: "A condition of the claim's placement cannot be evaluated for the server: it is neither true nor false.",
			Remedy: `Exclude what fails before the comparison, such as a division by a fact that is 0 where it is not known. ` +
				`label("KEY") never fails; server.labels["KEY"] fails where there is no such label.`,
		},
		{
			Code: CodeSpread, Meaning: "With this server the claim's spread would exceed `maxSkew`, or the server has no value for its key.",
			Remedy: "Wait until a server in an emptier place is free, or raise `maxSkew`, or give the servers what the key names. " +
				"For `rack` that is the annotation `metadata.metal.ironcore.dev/rack`. For `zone` and `region` these are the labels " +
				"`topology.kubernetes.io/zone` and `topology.kubernetes.io/region`. Any other key is that of a label.",
		},
		{
			Code: CodeGang, Meaning: "The server would do, but the claim's gang cannot have servers for all its members at once.",
			Remedy: "Create the members that are missing, let the others ask for less, or wait until enough servers are free.",
		},
	}
}
