"""VolumeBinding: claims find volumes, or nodes where volumes can be made; nothing here knows other plugins."""
