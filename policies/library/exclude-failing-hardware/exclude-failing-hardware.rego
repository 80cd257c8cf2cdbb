# Servers whose BMC reports failing hardware are not given out.
#
# A server for which rejects holds is turned away by selection.rego.
package metalaw.selection.exclude_failing_hardware

# What a BMC reports of a server that is not given out: of OK, Warning, Critical, and Unknown where it does not report.
failing := {"Critical", "Warning"}

rejects if input.candidate.health in failing
