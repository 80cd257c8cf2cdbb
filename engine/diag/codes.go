// SPDX-License-Identifier: Apache-2.0

package diag

import "slices"

// groups documents every code. Three lines are the code, what is wrong, and what to do
// about it. A test fails where a code is used that is not here, or is here and is not used.
var groups = slices.Concat([]Group{
	{Title: "The bundle", About: "About bundle.yaml, and about the files together.", Codes: append(table(Error, `
bundle-name
	The bundle has no name, or one that no object can have.
	Name it with lower-case letters, digits, dashes and dots, at most 42.
bundle-version
	The bundle has no version.
	Add version:, a semantic version such as 1.0.0.
version-form
	A version is not a semantic version, has more than 64 characters, or is one of which no name of a PolicyRevision can be made.
	Write three numbers, such as 1.2.0, and begin and end what follows each dot with a letter or a digit.
label-stage
	The label policy.metalaw.dev/stage of a bundle's ConfigMap says a stage that there is not.
	Write draft, shadow, canary or active.
label-bundle
	The label policy.metalaw.dev/bundle of a bundle's ConfigMap is not the name in bundle.yaml.
	Write the same name in both.
canary-scope
	The annotations of a canary do not say whom it governs.
	Write policy.metalaw.dev/servers, a label selector, or policy.metalaw.dev/percent, 1 to 100.
engine-too-old
	The bundle asks for a newer engine; nothing else of it is judged, because its forms may be newer as well.
	Upgrade metalaw, or lower minEngineVersion if the bundle uses nothing newer.
bundle-absent
	There is no bundle where it was looked for: the directory is empty, or the manifests have no ConfigMap with the label of a bundle.
	Name the directory with the bundle's files, or the manifest of its ConfigMap.
bundle-several
	The manifests hold more than one bundle, and one is judged at a time.
	Give the manifests of one of them.
bundle-object
	An object with the label of a bundle is no ConfigMap as it is written; nothing else is looked at.
	Write apiVersion: v1 and kind: ConfigMap.
file-kind
	What has the name of a file of the bundle is a directory, a pipe, a device or a link that leads nowhere; it is not read.
	Put a file with the text there, or take it out.
file-encoding
	A file is no UTF-8 text, such as UTF-16 or Latin-1, or holds the character U+0000, or stands under binaryData; nothing else is judged.
	Save it as UTF-8, and take out what is no letter.
file-missing
	A file that a bundle must have is not there and could not be filled in.
	Write it, or start from a shipped bundle.
file-unknown
	Nothing reads a file of this name.
	Correct the name, or take the file out. A kustomization.yaml makes the ConfigMap and is none of its files: use kubectl apply -k.
scenarios-missing
	The bundle has a lifecycle of its own, and no scenarios that show what it decides.
	Write scenarios.yaml with at least one scenario for each rule.
setting-word
	A setting holds a word that it does not have.
	Write one of the words that the finding names.
setting-number
	A setting is not a whole number, or is out of its bounds; a bundle may ask for more coverage than the floor and never for less.
	Write a number within the bounds that the finding names.
setting-duration
	A setting is not a duration, or is out of its bounds.
	Write numbers with units, such as 24h, within the bounds that the finding names.
setting-network
	A setting is not a network in CIDR notation.
	Write a network such as 10.20.0.0/16, with its own first address.
setting-pin
	The bundle pins certificates and names no network, or names networks and pins nothing.
	Write tls: pin and pinWithin together.
manifest-part
	A file that manifest.yaml lists lacks its name, its ConfigMap or its digest.
	Give it name, configMap and digest.
manifest-name
	A file in manifest.yaml has a name that no file can have, or its ConfigMap one that no ConfigMap can have, or that of the head.
	Correct the name; a file of the head is not listed.
manifest-digest
	A digest in manifest.yaml is none.
	Write sha256: and 64 lower-case hexadecimal digits, as sha256sum prints them.
manifest-twice
	A file is in the head and listed in manifest.yaml, or listed twice.
	Keep it in one place.
manifest-empty
	The manifest lists no file.
	List files, or leave manifest.yaml out.
manifest-part-missing
	A ConfigMap does not hold a file that manifest.yaml lists; until it does, nothing of the bundle is compiled.
	Apply it, in the same namespace and with the label policy.metalaw.dev/bundle-part.
manifest-part-differs
	A file is not of the digest that manifest.yaml lists; until it is, nothing of the bundle is compiled.
	Apply the parts and the head of the same version.
manifest-too-many
	The manifest lists more files than a bundle needs, each of which would have to be fetched.
	Put several files into the head, and list only what is too large for it.
revision-content
	The content that a PolicyRevision stores cannot be read, or is not what its digest says; nothing of it is looked at.
	Delete the PolicyRevision and bring it back from a good backup; the runbook of CompileFailed says how.
limit-file-size
	A file is larger than metalaw reads; none of it is looked at.
	Take out what nothing reads; what differs between servers belongs into their labels.
limit-bundle-size
	The files together, or packed, are larger than a PolicyRevision holds.
	Take out what nothing reads.
limit-lifecycle
	The lifecycle has more states or rules than metalaw evaluates.
	Tell servers apart by facts and guards, not by one state for each kind of server.
limit-scenarios
	There are more scenarios than metalaw runs.
	Keep those that show something that no other shows.
`), table(Warning, `
bundle-name-built-in
	The bundle has the name of one that is built into metalaw, and becomes another version of it, with the same right to activate.
	Take a name of your own.
setting-namespace
	A bound by namespace names one that no namespace can have, so that it bounds nobody.
	Write the name of a namespace; there are no patterns.
state-name-expected
	The lifecycle has no state of a name by which metalaw and the clients of its API know what a server is there for.
	Give the state that serves for it this name.
canary-errors-unbounded
	The lifecycle has no state Error, which is what a canary's maxErrors counts: halts alone pause a canary of it.
	Name the state Error to which servers go that somebody has to look at.
`)...)},
	{Title: "YAML", About: "About the form of any YAML file but macprefixes.yaml.", Codes: table(Error, `
yaml-alias
	An alias or a merge key repeats what is written elsewhere, so that a finding would have two places.
	Write the value out.
yaml-api-version
	The file has another apiVersion than its kind.
	Write the apiVersion that the finding names.
yaml-bare-boolean
	A bare On, Off, Yes or No stands where a word belongs; some YAML readers take it for a boolean.
	Put the word in quotes.
yaml-character
	A byte is no UTF-8 text, a control character stands in the file, or the indentation holds a space of another kind.
	Type the line anew, or save the file as UTF-8.
yaml-documents
	The file holds more than one YAML document.
	Keep one document per file.
yaml-duplicate-key
	A mapping has the same key twice.
	Keep one of the two.
yaml-empty
	The file is empty.
	Write it, or leave its key out so that it is filled from the default.
yaml-kind
	The file is of another kind than its name says.
	Write the kind that the finding names; perhaps two files were exchanged.
yaml-missing-key
	A key that the file must have is not there.
	Add it.
yaml-quote
	A value begins with a quote and goes on behind the quote that ends it.
	Write marked("Dirty") instead of "Dirty" in lifecycle.marks, or put the whole value in single quotes.
yaml-syntax
	The text cannot be read as YAML.
	Check indentation, brackets and quotes where the finding points and in the line before.
yaml-tab
	A tab is used for indentation.
	Use spaces.
yaml-tag
	A value carries a tag, or begins with an exclamation mark, which YAML takes for one.
	Put the whole value in double quotes.
yaml-type
	A list, a mapping or a single value stands where another of them belongs.
	Write what the finding asks for.
yaml-unknown-key
	A key means nothing here.
	Correct its spelling; the finding lists the keys that are known.
`)},
	{Title: "Definitions and conditions", About: "About the CEL expressions in lifecycle.yaml and in the placement of a claim.", Codes: table(Error, `
cel-age
	A fact that changes with time alone is compared with something that is no duration literal, so that the moment of the change cannot be told.
	Write lifecycle.age >= duration("5m").
cel-comprehension
	An expression looks at many values; there are no comprehensions, so that its cost is bounded.
	In a definition use marked("Dirty") for a mark, and in for other words; in a placement use in for labels.
cel-cost
	An expression, or all of a placement together, may cost more than a decision should take.
	Compare with ==, in or startsWith; avoid patterns, functions within functions, and joined texts.
cel-empty
	An expression or a condition is empty.
	Write an expression that yields true or false, or take the line of the condition out.
cel-enum
	A fact is compared with a word that it never has.
	Write one of the words that the finding lists.
cel-invalid
	CEL refuses the expression for the reason that the finding gives.
	Correct the expression; the reference page shows types.
cel-literal
	A duration, moment, number or pattern is written in a form that cannot be read.
	Write it as the finding shows.
cel-not-bool
	An expression yields something else than true or false.
	Compare it with something.
cel-program
	An expression cannot be prepared for evaluation.
	Write it more simply.
cel-syntax
	An expression cannot be read from the place that the finding names.
	Correct it there; strings stand in double quotes, and == compares.
cel-too-long
	An expression is longer or deeper than anybody can read.
	Split it into several definitions, or say less.
cel-type
	Values of two types are combined that do not go together.
	Let both sides have the same type.
cel-unknown-fact
	There is no fact of this name.
	Take the one that the finding suggests, or see the reference page that it names.
cel-unknown-function
	There is no function of this name.
	See the reference page that the finding names for what an expression may use.
define-name
	No guard could ask for a definition of this name, because it is no identifier or a word of CEL.
	Write letters and digits only, for example poweredOff.
define-too-many
	There are more definitions than a decision keeps values of.
	Take out those that no guard uses.
mark-unknown
	A mark is asked for, cleared or given that nothing ever sets.
	Correct its spelling.
`)},
	placementCodes,
}, lifecycleCodes, []Group{macPrefixCodes})
