package transitions

// PageBytes is how many bytes of data a page of a list or of the log has before it ends early: with the row that reaches them. The next
// page begins after that row.
const PageBytes = 1 << 20

// firstRows is how many rows a page is begun with, before their size is known.
const firstRows = 16

// NextRows is how many rows to read next for a page of at most limit rows, of which there are so many bytes and rows: as many as will
// fill it, if they are as large as those before them.
func NextRows(bytes, rows, limit int) int {
	if rows == 0 {
		return min(firstRows, limit)
	}
	left := max(PageBytes-bytes, 0)
	return max(1, min(limit-rows, left*rows/max(bytes, 1)+1))
}

// PageFull reports whether a page of the history has as many entries as it may, or as many bytes.
func PageFull(list []Entry, limit int) bool {
	return len(list) >= limit || EntryBytes(list) >= PageBytes
}

// EntryBytes is how many bytes of data entries have.
func EntryBytes(list []Entry) (size int) {
	for i := range list {
		size += len(list[i].Payload) + len(list[i].Data)
	}
	return size
}
