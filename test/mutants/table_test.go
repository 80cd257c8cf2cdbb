// SPDX-License-Identifier: Apache-2.0

package mutants

// mutant is one change of the source, and the test that must fail with it.
type mutant struct {
	// name says what the changed program does.
	name string
	// file is the changed file, from the root of the module. From stands there once, and to takes its place.
	file, from, to string
	// test is the test that must fail, in the package of a directory.
	test, in string
}

// mutants are changes that survived every test when somebody tried them, until the named test came.
var mutants = []mutant{
	{name: "the guard before a write to the BMC ignores what is stale",
		file: "controllers/server/confirm.go",
		from: `return fmt.Errorf("not asked, because %s changed meanwhile", stale)`, to: `_ = stale`,
		test: "TestABMCHearsOnlyWhatStillHolds", in: "./controllers/server"},
	{name: "the guard lets a write pass when the server cannot be read",
		file: "controllers/server/confirm.go",
		from: `return &power.PostponedError{Cause: fmt.Errorf("not asked, because the server could not be read: %w", err)}`, to: `return nil`,
		test: "TestABMCHearsOnlyWhatStillHolds", in: "./controllers/server"},
	{name: "a release record that undo-release took back is no news",
		file: "controllers/server/recheck/recheck.go",
		from: `annotated(now, was, v1alpha1.ReleasedClaimAnnotation)}`,
		to:   `now.Annotations[v1alpha1.ReleasedClaimAnnotation] != "" && annotated(now, was, v1alpha1.ReleasedClaimAnnotation)}`,
		test: "TestAReleaseThatWasTakenBackIsNews", in: "./controllers/server/recheck"},
	{name: "a failed write of custody leaves the mark",
		file: "controllers/server/custody.go",
		from: "if err := v.keepMark(ctx, mark); err != nil {\n\t\treturn conflictOrBroken(err)\n\t}\n\treturn v.marked(mark)",
		to:   "if err := v.keepMark(ctx, mark); err != nil {\n\t\tv.marked(mark)\n\t\treturn conflictOrBroken(err)\n\t}\n\treturn v.marked(mark)",
		test: "TestAMarkThatCustodyDoesNotHaveIsNotInTheStatusEither", in: "./controllers/server"},
	{name: "a failed write of custody is no failure",
		file: "controllers/server/custody.go",
		from: "if err := v.keepMark(ctx, mark); err != nil {\n\t\treturn conflictOrBroken(err)\n\t}",
		to:   "_ = v.keepMark(ctx, mark)",
		test: "TestAMarkThatCustodyDoesNotHaveIsNotInTheStatusEither", in: "./controllers/server"},
	{name: "forgetHolder does not confirm",
		file: "controllers/server/custody.go",
		from: "if kept || earns {\n\t\tif p, ok := v.confirm(ctx, fleet.Record); !ok {\n\t\t\treturn p\n\t\t}",
		to:   "if kept || earns {",
		test: "TestTheHolderOfAServerThatIsNoLongerAsDecidedIsKept", in: "./controllers/server"},
	{name: "a claim's end deletes another's boot configuration",
		file: "controllers/claim/release.go",
		from: `!found || !metav1.IsControlledBy(&boot, c) || `, to: `!found || `,
		test: "TestAClaimTakesOnlyItsOwnBootConfigurationAlong", in: "./controllers/claim"},
	{name: "a release is written without the optimistic lock",
		file: "controllers/claim/release.go",
		from: "client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})", to: "client.MergeFrom(before)",
		test: "TestAReleaseOfAServerThatWasWrittenSinceItWasReadIsRefused", in: "./controllers/claim"},
	{name: "a move that clears Dirty rests on the cache",
		file: "controllers/server/custody.go",
		from: "|| !proof.Takes(d, v.settings()) {", to: "|| proof.Takes(d, v.settings()) {",
		test: "TestAServerIsCalledCleanOnlyByAWipeThatTheStoreHas", in: "./controllers/server"},
	{name: "the clean record rests on the cache",
		file: "controllers/server/custody.go",
		from: "v.inventory, v.stored); p.Phase != loop.Done {", to: "v.inventory, v.stored); p.Err != nil {",
		test: "TestTheCleanRecordRestsOnAWipeThatTheStoreHas", in: "./controllers/server"},
	{name: "the fence passes whoever holds the Lease",
		file: "controllers/leading/leading.go",
		from: `ptr.Deref(lease.Spec.HolderIdentity, ""); holder != identity {`, to: `ptr.Deref(lease.Spec.HolderIdentity, ""); false && holder != identity {`,
		test: "TestAWriteIsFencedByTheStoredLease", in: "./controllers/leading"},
	{name: "writes to BMCs are not fenced",
		file: "redfish/guard.go",
		from: "[]func(context.Context) error{guard, fence}", to: "[]func(context.Context) error{guard}",
		test: "TestTheFenceOfAPoolIsAskedLastBeforeEveryWrite", in: "./redfish"},
	{name: "a certificate that is not the pinned one is silence",
		file: "redfish/errors.go",
		from: "return is[*CertificateError](err) || ", to: "return ",
		test: "TestAnUntrustedCertificateIsAnAnswer", in: "./redfish"},
	{name: "a redirected write reaches another machine",
		file: "redfish/change.go",
		from: "if err == nil && !Shows(want, there) {", to: "if false {",
		test: "TestAWriteIsNotRepeatedWhereAnotherMachineIs", in: "./redfish"},
	{name: "what an entry had before it was voided counts",
		file: "metalprobe/registry/void.go",
		from: "wipe.Entry == g.entry && wipe.State == policyv1alpha1.WipeVerified {", to: "wipe.Entry == g.entry && wipe.State == policyv1alpha1.WipeRunning {",
		test: "TestAVoidedEntryProvesNothingWhateverCameFirst", in: "./metalprobe/registry"},
	{name: "a wipe counts without its record",
		file: "controllers/server/proof/proof.go",
		from: `case inv.LastRecord == nil:`, to: `case false:`,
		test: "TestAWipeIsProvedByTheInventoryAndItsRecord", in: "./controllers/server/proof"},
}
