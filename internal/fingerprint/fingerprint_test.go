// SPDX-License-Identifier: Apache-2.0

package fingerprint

import "testing"

const plain = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func TestParse(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"plain hexadecimal digits are kept", plain, plain},
		{"upper case becomes lower case", "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855", plain},
		{"colons between bytes go, as openssl prints them", "E3:B0:C4:42:98:FC:1C:14:9A:FB:F4:C8:99:6F:B9:24:27:AE:41:E4:64:9B:93:4C:A4:95:99:1B:78:52:B8:55", plain},
		{"the line of openssl is read whole", "sha256 Fingerprint=E3:B0:C4:42:98:FC:1C:14:9A:FB:F4:C8:99:6F:B9:24:27:AE:41:E4:64:9B:93:4C:A4:95:99:1B:78:52:B8:55", plain},
		{"a prefix and spaces go", " sha256:" + plain + "\n", plain},
		{"a SHA-1 fingerprint is refused", "da39a3ee5e6b4b0d3255bfef95601890afd80709", ""},
		{"colons at other places are refused", plain[:3] + ":" + plain[3:], ""},
		{"other letters are refused", "z" + plain[1:], ""},
		{"nothing is refused", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Parse(c.text); got != c.want {
				t.Errorf("Parse(%q) = %q, want %q", c.text, got, c.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(plain)
	f.Add("E3:B0")
	f.Fuzz(func(t *testing.T, text string) {
		if got := Parse(text); got != "" && (len(got) != Size || Parse(got) != got) {
			t.Errorf("Parse(%q) = %q, which is not its own spelling", text, got)
		}
	})
}
