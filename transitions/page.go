package transitions

// PageBytes is the number of bytes of data at which a page of a list or of the log ends early, including the row that reaches it.
const PageBytes = 1 << 20

// firstRows is the size of the first read of a page, before the size of its rows is known.
const firstRows = 16

// NextRows returns how many rows to read next for a page of at most limit rows that has bytes and
// rows: as many as are expected to fill it.
func NextRows(bytes, rows, limit int) int {
	if rows == 0 {
		return min(firstRows, limit)
	}
	left := max(PageBytes-bytes, 0)
	return max(1, min(limit-rows, left*rows/max(bytes, 1)+1))
}

// PageFull reports whether a page of the history is full by entries or bytes.
func PageFull(list []Entry, limit int) bool {
	return len(list) >= limit || EntryBytes(list) >= PageBytes
}

// EntryBytes returns the number of bytes of data in entries.
func EntryBytes(list []Entry) (size int) {
	for i := range list {
		size += len(list[i].Payload) + len(list[i].Data)
	}
	return size
}
