package metrics

var (
	spaceTotal  = gauge("ottla_log_directory_total_bytes", "The size of the log directory's file system, as of the last look.", "logdirectory")
	spaceFree   = gauge("ottla_log_directory_free_bytes", "What may still be written to it, as of the last look.", "logdirectory")
	spaceMark   = gauge("ottla_log_directory_free_mark_bytes", "With fewer bytes free clients may not write (ottla.disk.free.bytes); 0: they always may.", "logdirectory")
	diskWaited  = gauge("ottla_log_directory_waiting_seconds", "How long the oldest operation on it has been under way, as of the last look; the directory is given up after ottla.disk.timeout.ms.", "logdirectory")
	spaceStands = gauge("ottla_log_directory_space_state", "0 there is room, 1 clients may not write, 2 groups and transactions may not be changed either.", "logdirectory")
)

// collectSpace tells how full the log directories are, and how slow, without asking the file
// systems: a disk that hangs holds up no scrape.
func (c *Collector) collectSpace(p page) {
	for _, directory := range c.source.Store.Directories() {
		if c.source.Waited == nil {
			break
		}
		if waited, known := c.source.Waited(directory.Path); known {
			p.put(diskWaited, waited.Seconds(), directory.Path)
		}
	}
	if c.source.Space == nil {
		return
	}
	for _, directory := range c.source.Store.Directories() {
		left := c.source.Space(directory.Path)
		total, usable, mark, _ := left.Usage()
		if total == 0 {
			continue // nobody has looked, or could
		}
		p.put(spaceTotal, float64(total), directory.Path)
		p.put(spaceFree, float64(usable), directory.Path)
		p.put(spaceMark, float64(mark), directory.Path)
		p.put(spaceStands, float64(left.State()), directory.Path)
	}
}
