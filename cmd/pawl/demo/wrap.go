package demo

// width is how long a line of JSON may become, in bytes.
const width = 100

// wrap breaks JSON text into lines after commas, so that it can be read as it
// is. What has no comma stays whole.
func wrap(text string) []string {
	var lines []string
	begin, comma := 0, 0 // comma is after the last one of the line
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			if i >= begin+width && comma > begin {
				lines = append(lines, text[begin:comma])
				begin = comma
			}
			comma = i + 1
		}
	}
	if len(text) > begin+width && comma > begin {
		lines = append(lines, text[begin:comma])
		begin = comma
	}
	return append(lines, text[begin:])
}
