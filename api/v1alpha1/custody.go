// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ReleaseRecorded says that a durable record names the last holder of a server: without it nothing on the server is
// erased. A grace period is for whoever begins a wipe to wait for.
func ReleaseRecorded(s *Server) bool {
	record := s.Annotations[ReleasedClaimAnnotation]
	return record != "" && record == s.Annotations[ClaimUIDAnnotation]
}
