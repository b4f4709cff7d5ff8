"""My data: rows of any form, from files, folders and the hub, as minidepth.Data."""
