import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** HDFS with two data nodes on loopback, in the folder that is given, until its input closes; each line of it is a local path to copy into the root. */
public final class MiniHdfs {
    public static void main(String[] arguments) throws Exception {
        Configuration conf = new Configuration();
        conf.set("hdfs.minidfs.basedir", new File(arguments[0]).getAbsolutePath());
        conf.setBoolean("dfs.permissions.enabled", false);
        BufferedReader paths = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        try (MiniDFSCluster cluster = new MiniDFSCluster.Builder(conf).numDataNodes(2).build()) {
            cluster.waitActive();
            say("ready " + cluster.getURI());
            for (String path = paths.readLine(); path != null; path = paths.readLine()) {
                cluster.getFileSystem().copyFromLocalFile(new Path(path), new Path("/"));
                say("copied");
            }
        }
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
