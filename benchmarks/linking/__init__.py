"""What the link check needs beside itself."""
