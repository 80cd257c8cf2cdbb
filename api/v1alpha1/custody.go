// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ReleaseRecorded says that a durable record names the last holder of a server: without it nothing on the server is
// erased. A grace period is for whoever begins a wipe to wait for.
func ReleaseRecorded(s *Server) bool {
	record := s.Annotations[ReleasedClaimAnnotation]
	return record != "" && record == s.Annotations[ClaimUIDAnnotation]
}

// BindingEnded says that a record ends the binding that the server names. One that names an earlier holder does not. Other
// than for ReleaseRecorded, on whose word disks are erased, a record counts as well where no holder's UID is recorded: on
// this word nothing is erased, and no claim may take over a server whose release is recorded at all.
func BindingEnded(s *Server) bool {
	record, uid := s.Annotations[ReleasedClaimAnnotation], s.Annotations[ClaimUIDAnnotation]
	return record != "" && (uid == "" || uid == record)
}

// KeptAfterRelease says that a server's holder has ended, and that its data is kept until somebody clears
// serverClaimRef or sets reclaimPolicy to Recycle.
func KeptAfterRelease(s *Server) bool {
	return s.Spec.ServerClaimRef != nil && s.Spec.ReclaimPolicy == ReclaimPolicyRetain && BindingEnded(s)
}
