import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** HDFS with two data nodes on loopback, in the folder that is given, until its input closes. */
public final class MiniHdfs {
    public static void main(String[] arguments) throws Exception {
        Configuration conf = new Configuration();
        conf.set("hdfs.minidfs.basedir", new File(arguments[0]).getAbsolutePath());
        conf.setBoolean("dfs.permissions.enabled", false);
        try (MiniDFSCluster cluster = new MiniDFSCluster.Builder(conf).numDataNodes(2).build()) {
            cluster.waitActive();
            System.out.println("ready " + cluster.getURI());
            System.out.flush();
            while (System.in.read() >= 0) { }
        }
    }
}
